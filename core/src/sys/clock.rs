//! The machine's clocks and the identity of its boot.

use super::dir::read_small;

/// Longer than a boot's identity is written.
const BOOT_ID_BYTES_MAX: usize = 64;

/// What a clock answers, in milliseconds; `None` when the system does not have it.
#[inline]
fn clock_ms(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a timespec of this C library and outlives the call.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return after_2038_ms(clock);
    }
    match (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec)) {
        (Ok(seconds), Ok(nanoseconds)) => Some(to_ms(seconds, nanoseconds)),
        _ => after_2038_ms(clock),
    }
}

#[inline]
fn to_ms(seconds: u64, nanoseconds: u64) -> u64 {
    seconds
        .saturating_mul(1000)
        .saturating_add(nanoseconds / 1_000_000)
}

/// Where seconds have 32 bits, the plain call is the cheap one (no kernel entry) and right until
/// 2038; from then on it fails or turns negative, and this asks the kernel for 64 bits.
#[cfg(target_pointer_width = "32")]
#[cold]
fn after_2038_ms(clock: libc::clockid_t) -> Option<u64> {
    /// The same on every 32-bit machine, since Linux 5.1.
    const SYS_CLOCK_GETTIME64: libc::c_long = if cfg!(target_arch = "mips") {
        4403
    } else {
        403
    };

    /// The kernel's `__kernel_timespec`.
    #[repr(C)]
    struct Time64 {
        seconds: i64,
        nanoseconds: i64,
    }

    let mut time = Time64 {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the call writes one `__kernel_timespec`, which `time` is, and it outlives the call.
    let answer = unsafe { libc::syscall(SYS_CLOCK_GETTIME64, clock, &raw mut time) };
    if answer != 0 {
        return None;
    }
    // The upper half of the nanoseconds is padding on some kernels.
    let seconds = u64::try_from(time.seconds).ok()?;
    Some(to_ms(seconds, u64::from(time.nanoseconds as u32)))
}

/// With 64-bit seconds only a clock before 1970 ends here.
#[cfg(not(target_pointer_width = "32"))]
#[cold]
fn after_2038_ms(_clock: libc::clockid_t) -> Option<u64> {
    None
}

/// Wall clock, milliseconds since 1970.
pub(super) fn wall_ms() -> u64 {
    clock_ms(libc::CLOCK_REALTIME).unwrap_or(0)
}

/// Wall clock, milliseconds since 1970, of the last kernel tick.
#[inline]
pub(super) fn wall_coarse_ms() -> u64 {
    clock_ms(libc::CLOCK_REALTIME_COARSE).unwrap_or_else(wall_ms)
}

/// Milliseconds since boot, suspended time included where the kernel counts it.
#[inline]
pub(super) fn boot_ms() -> u64 {
    match clock_ms(libc::CLOCK_BOOTTIME) {
        Some(ms) => ms,
        None => clock_ms(libc::CLOCK_MONOTONIC).unwrap_or(0),
    }
}

/// This boot's identity, 0 where the system does not tell.
pub(super) fn boot_id() -> u128 {
    let mut buffer = [0; BOOT_ID_BYTES_MAX];
    let text = read_small("/proc/sys/kernel/random/boot_id", &mut buffer).unwrap_or(&[]);
    parse_boot_id(std::str::from_utf8(text).unwrap_or(""))
}

fn parse_boot_id(text: &str) -> u128 {
    let digits: String = text.trim_ascii().chars().filter(|&c| c != '-').collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn the_wall_clock_agrees_with_the_standard_library() {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let ours = u128::from(wall_ms());
        assert!(ours.abs_diff(before.as_millis()) < 10_000);
    }

    #[test]
    fn the_boot_clock_goes_forward() {
        let first = boot_ms();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let second = boot_ms();
        assert!(second > first);
    }

    #[test]
    fn a_missing_clock_is_none() {
        assert_eq!(clock_ms(12_345), None);
    }

    #[cfg(target_pointer_width = "32")]
    #[test]
    fn the_64_bit_call_agrees_with_the_plain_one() {
        let wide = after_2038_ms(libc::CLOCK_REALTIME).unwrap();
        let plain = clock_ms(libc::CLOCK_REALTIME).unwrap();
        assert!(wide.abs_diff(plain) < 10_000);
    }

    #[test]
    fn seconds_past_2038_fit() {
        assert_eq!(to_ms(4_294_967_296, 999_999_999), 4_294_967_296_999);
        assert_eq!(to_ms(u64::MAX, 0), u64::MAX);
    }

    #[test]
    fn boot_ids_are_hexadecimal_with_dashes() {
        assert_eq!(
            parse_boot_id("00000000-0000-0000-0000-0000000001ff\n"),
            0x1ff
        );
        assert_eq!(
            parse_boot_id("ffffffff-ffff-ffff-ffff-ffffffffffff"),
            u128::MAX
        );
        assert_eq!(parse_boot_id("nonsense"), 0);
        assert_eq!(parse_boot_id(""), 0);
    }
}
