//! Who holds a lock, and whether that process still runs.

use crate::sys::clock;
use crate::sys::dir::read_small;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The longest text that tells a holder.
pub(super) const HOLDER_BYTES_MAX: usize = 128;
/// More than /proc says of a process in one line.
const STAT_BYTES_MAX: usize = 1024;

/// A process that holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sys) struct Holder {
    pub(in crate::sys) pid: u32,
    /// 0 when the system does not tell.
    pub(in crate::sys) boot_id: u128,
    /// In clock ticks since boot, as /proc says; 0 when the system does not tell.
    pub(in crate::sys) start_ticks: u64,
}

impl Holder {
    pub(in crate::sys) fn this_process() -> Holder {
        let pid = std::process::id();
        Holder {
            pid,
            boot_id: clock::boot_id(),
            start_ticks: process(pid).map_or(0, |process| process.start_ticks),
        }
    }

    /// `PID BOOT-ID START-TIME`, with the given byte between them.
    pub(super) fn to_text(self, between: char) -> String {
        let Holder {
            pid,
            boot_id,
            start_ticks,
        } = self;
        format!("{pid}{between}{boot_id:032x}{between}{start_ticks}")
    }

    /// The holder that three words tell; further words are left to the caller.
    pub(super) fn parse(words: &mut dyn Iterator<Item = &str>) -> Option<Holder> {
        let pid = words.next()?.parse().ok()?;
        let boot_id = u128::from_str_radix(words.next()?, 16).ok()?;
        let start_ticks = words.next()?.parse().ok()?;
        // 0 and numbers past the signed range would mean process groups to kill(2).
        (pid > 0 && i32::try_from(pid).is_ok()).then_some(Holder {
            pid,
            boot_id,
            start_ticks,
        })
    }

    /// Whether this process still runs, in doubt yes. Processes of another pid namespace cannot
    /// be told from dead ones.
    pub(super) fn lives(&self, boot_id: u128) -> bool {
        if self.boot_id != 0 && boot_id != 0 && self.boot_id != boot_id {
            return false;
        }
        let Ok(pid) = libc::pid_t::try_from(self.pid) else {
            return false;
        };
        // SAFETY: signal 0 only asks whether the process exists.
        if unsafe { libc::kill(pid, 0) } == -1
            && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
        {
            return false;
        }
        match process(self.pid) {
            None => true,
            Some(process) if process.ended => false,
            Some(process) => {
                self.start_ticks == 0
                    || process.start_ticks == 0
                    || self.start_ticks == process.start_ticks
            }
        }
    }
}

/// What a lock file says: its holder, and the way that it was locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Announcement {
    pub(super) holder: Holder,
    pub(super) how: String,
}

impl Announcement {
    pub(super) fn to_text(&self) -> String {
        format!("{} {}\n", self.holder.to_text(' '), self.how)
    }

    /// A line that was torn, or is still being written, lacks its end and tells nobody.
    pub(super) fn parse(text: &str) -> Option<Announcement> {
        let line = text.get(..text.find('\n')?)?;
        let mut words = line.split_ascii_whitespace();
        let holder = Holder::parse(&mut words)?;
        let how = words.next()?.to_owned();
        Some(Announcement { holder, how })
    }
}

/// The text of a lock file.
pub(super) fn read_text(file: &File) -> io::Result<String> {
    let mut bytes = [0u8; HOLDER_BYTES_MAX];
    let count = file.read_at(&mut bytes, 0)?;
    Ok(String::from_utf8_lossy(bytes.get(..count).unwrap_or(&[])).into_owned())
}

/// What /proc says of a process.
#[derive(Debug)]
struct Process {
    ended: bool,
    start_ticks: u64,
}

fn process(pid: u32) -> Option<Process> {
    // The first thread's entry, which tells the same: of the process's own, qemu-user makes up
    // one for itself that disagrees with what others see.
    let mut buffer = [0; STAT_BYTES_MAX];
    let text = read_small(&format!("/proc/{pid}/task/{pid}/stat"), &mut buffer).ok()?;
    parse_stat(&String::from_utf8_lossy(text))
}

fn parse_stat(text: &str) -> Option<Process> {
    // The command's name, in parentheses, may itself contain spaces and parentheses.
    let name_end = text.bytes().rposition(|byte| byte == b')')?;
    let fields = text.get(name_end.checked_add(1)?..)?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let threads: u64 = fields.nth(16)?.parse().ok()?;
    let start_ticks = fields.nth(1)?.parse().ok()?;
    // A process whose first thread has ended looks like a zombie while its other threads run.
    let ended = matches!(state, "Z" | "X" | "x") && threads <= 1;
    Some(Process { ended, start_ticks })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn process_states_are_read_past_odd_names() {
        let fields = "S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 777 1 1";
        let process = parse_stat(&format!("12 (a) R b) {fields}")).unwrap();
        assert!(!process.ended);
        assert_eq!(process.start_ticks, 777);
        let zombie = fields.replacen('S', "Z", 1);
        assert!(!parse_stat(&format!("12 (a) {zombie}")).unwrap().ended);
        let alone = zombie.replace(" 3 0 777", " 1 0 777");
        assert!(parse_stat(&format!("12 (a) {alone}")).unwrap().ended);
        assert!(parse_stat("").is_none());
        assert!(parse_stat("12 (a) S 1").is_none());
    }

    #[test]
    fn a_holder_of_this_boot_lives_and_one_of_another_does_not() {
        let me = Holder::this_process();
        assert!(me.lives(me.boot_id));
        assert!(!me.lives(me.boot_id ^ 1));
        // A system that does not tell its boot proves nothing.
        assert!(me.lives(0));
        assert!(Holder { boot_id: 0, ..me }.lives(me.boot_id));
    }

    #[test]
    fn a_text_is_read_as_it_was_written() {
        let said = Announcement {
            holder: Holder::this_process(),
            how: "ofd".into(),
        };
        assert_eq!(Announcement::parse(&said.to_text()), Some(said.clone()));
        let torn = said.to_text();
        assert_eq!(Announcement::parse(torn.trim_end()), None);
        for text in ["", "\n", "1 0\n", "0 0 0 ofd\n", "4294967295 0 0 ofd\n"] {
            assert_eq!(Announcement::parse(text), None, "{text:?}");
        }
    }
}
