//! Which library answers.

use crate::error::{Error, Result};
use crate::{raw, text, Status};

/// The version of the library: major, minor, patch.
pub fn version() -> (u32, u32, u32) {
    // SAFETY: the call takes nothing.
    let version = unsafe { raw::edgelog_version() };
    (version >> 16, (version >> 8) & 0xff, version & 0xff)
}

/// The version of the library as text.
pub fn version_text() -> &'static str {
    // SAFETY: the answer is a constant of the library.
    unsafe { text::constant(raw::edgelog_version_text()) }.unwrap_or("")
}

/// Whether the library can serve what was compiled against this header: the same line of versions
/// (before 1.0 the second number makes the line), and not an older one.
pub(crate) fn agree() -> Result<()> {
    let wanted = (
        raw::EDGELOG_VERSION_MAJOR,
        raw::EDGELOG_VERSION_MINOR,
        raw::EDGELOG_VERSION_PATCH,
    );
    if serves(version(), wanted) {
        return Ok(());
    }
    let found = version_text();
    let (major, minor, patch) = wanted;
    let text =
        format!("the edgelog library has version {found}, but {major}.{minor}.{patch} is needed");
    Err(Error::new(Status::UNSUPPORTED, &text))
}

fn serves(found: (u32, u32, u32), wanted: (u32, u32, u32)) -> bool {
    let line = |version: (u32, u32, u32)| (version.0, if version.0 == 0 { version.1 } else { 0 });
    line(found) == line(wanted) && found >= wanted
}

#[cfg(test)]
mod tests {
    use super::serves;

    #[test]
    fn newer_of_the_same_line_serves() {
        assert!(serves((0, 1, 0), (0, 1, 0)));
        assert!(serves((0, 1, 7), (0, 1, 0)));
        assert!(serves((1, 4, 0), (1, 3, 9)));
    }

    #[test]
    fn older_or_other_lines_do_not() {
        assert!(!serves((0, 1, 0), (0, 1, 1)));
        assert!(!serves((0, 2, 0), (0, 1, 0)));
        assert!(!serves((1, 2, 9), (1, 3, 0)));
        assert!(!serves((2, 0, 0), (1, 3, 0)));
    }
}
