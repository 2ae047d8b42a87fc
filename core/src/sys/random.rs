//! Numbers nobody can guess, from the best source that answers without waiting.

use super::dir::read_small;

/// A random number. Waits for nothing: a gateway that has just booted may have gathered too
/// little randomness for getrandom(2) for minutes, and then the lesser sources must do.
pub(super) fn u64() -> u64 {
    from_call()
        .or_else(from_device)
        .unwrap_or_else(|| mixed(super::clock::boot_ms(), super::clock::wall_ms()))
}

fn from_call() -> Option<u64> {
    let mut bytes = [0u8; 8];
    // By number, because C libraries before 2.25 do not have the function.
    // SAFETY: the call writes at most the given length into `bytes`, which outlives it.
    let count = unsafe {
        libc::syscall(
            libc::SYS_getrandom,
            bytes.as_mut_ptr(),
            bytes.len(),
            libc::GRND_NONBLOCK,
        )
    };
    (count == 8).then(|| u64::from_le_bytes(bytes))
}

fn from_device() -> Option<u64> {
    let bytes = read_small("/dev/urandom", &mut [0; 8]).ok()?.try_into();
    bytes.ok().map(u64::from_le_bytes)
}

/// The last resort: clocks, the process, where things lie in memory and how often this was asked.
fn mixed(boot_ms: u64, wall_ms: u64) -> u64 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static ASKED: AtomicU32 = AtomicU32::new(0);

    let asked = ASKED.fetch_add(1, Ordering::Relaxed);
    let on_stack = (&raw const boot_ms).addr() as u64;
    let in_code = (&raw const ASKED).addr() as u64;
    let parts = [
        boot_ms,
        wall_ms,
        u64::from(std::process::id()),
        on_stack,
        in_code,
        u64::from(asked),
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for part in parts {
        // The finishing step of splitmix64, once per part.
        state ^= part;
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^= state >> 31;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_source_repeats_itself() {
        assert_ne!(u64(), u64());
        assert_ne!(from_call(), from_call());
        assert!(from_device().is_some());
        assert_ne!(from_device(), from_device());
        assert_ne!(mixed(1, 2), mixed(1, 2));
    }
}
