//! Why a call fails, on its way to the caller's `edgelog_error`.

use std::any::Any;
use std::ffi::c_char;
use std::fmt::{self, Write};

use edgelog_core::Kind;

use crate::error::{
    edgelog_error, EDGELOG_ERROR_HAS_OFFSET, EDGELOG_ERROR_HAS_PARTITION,
    EDGELOG_ERROR_HAS_POSITION, EDGELOG_ERROR_HAS_PROCESS, EDGELOG_ERROR_HAS_SEGMENT,
    EDGELOG_ERROR_TEXT_BYTES,
};
use crate::status::{self, edgelog_status, EDGELOG_OK};
use crate::tagged::{self, Tagged};

/// The engine's error, or one found on the way to it. One word wide, so that an [`Answer`] travels
/// in registers.
pub(crate) use edgelog_core::Error as Failure;

/// What the body of a call comes to.
pub(crate) type Answer = Result<edgelog_status, Failure>;

/// A wrong argument.
#[cold]
#[inline(never)]
pub(crate) fn invalid(text: &'static str) -> Failure {
    Failure::new(Kind::Invalid, text)
}

/// A panic of the engine, with what it said.
#[cold]
pub(crate) fn of_panic(payload: &(dyn Any + Send)) -> Failure {
    let said = if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "no message"
    };
    Failure::new(Kind::Internal, format!("a fault of edgelog: {said}"))
}

/// Fills the caller's error, if there is one, and returns the status to answer.
///
/// # Safety
/// `error` is NULL or passed [`tagged::check`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn report(failure: Failure, error: *mut edgelog_error) -> edgelog_status {
    let status = status::of_kind(failure.kind());
    debug_assert!(status < EDGELOG_OK);
    if !error.is_null() {
        // SAFETY: as this function asks for.
        unsafe { tagged::give(error, describe(&failure)) };
    }
    status
}

fn describe(failure: &Failure) -> edgelog_error {
    let mut filled = edgelog_error {
        status: status::of_kind(failure.kind()),
        os_error: failure.os_error().unwrap_or(0),
        ..edgelog_error::DEFAULT
    };
    let mut text = Text {
        bytes: &mut filled.text,
        used: 0,
    };
    // Text never refuses; the engine's own Display has no reason to.
    let _ = write!(text, "{failure}");
    if let Some(partition) = failure.partition() {
        filled.partition = partition;
        filled.flags |= EDGELOG_ERROR_HAS_PARTITION;
    }
    if let Some(segment) = failure.segment() {
        filled.segment = segment;
        filled.flags |= EDGELOG_ERROR_HAS_SEGMENT;
    }
    if let Some(position) = failure.position() {
        filled.position = position;
        filled.flags |= EDGELOG_ERROR_HAS_POSITION;
    }
    if let Some((first, end)) = failure.offsets() {
        filled.offset = first;
        filled.offset_end = end;
        filled.flags |= EDGELOG_ERROR_HAS_OFFSET;
    }
    if let Some(process) = failure.process_id() {
        filled.process_id = process;
        filled.flags |= EDGELOG_ERROR_HAS_PROCESS;
    }
    filled
}

/// Writes UTF-8 into a zeroed array, cut between two characters, its last byte left zero.
struct Text<'a> {
    bytes: &'a mut [c_char; EDGELOG_ERROR_TEXT_BYTES],
    used: usize,
}

impl Write for Text<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        for character in piece.chars() {
            let end = self.used.saturating_add(character.len_utf8());
            if end >= EDGELOG_ERROR_TEXT_BYTES {
                // Full: nothing that follows may slip in behind what was left out.
                self.used = EDGELOG_ERROR_TEXT_BYTES;
                break;
            }
            let mut encoded = [0; 4];
            character.encode_utf8(&mut encoded);
            if let Some(room) = self.bytes.get_mut(self.used..end) {
                for (to, from) in room.iter_mut().zip(encoded) {
                    *to = from as c_char;
                }
            }
            self.used = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(failure: Failure) -> String {
        let bytes = describe(&failure).text.map(|c| c as u8);
        String::from_utf8(bytes.into_iter().take_while(|&b| b != 0).collect()).unwrap_or_default()
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        let umlauts: &'static str = Box::leak("\u{e4}".repeat(200).into_boxed_str());
        assert_eq!(text_of(invalid(umlauts)), "\u{e4}".repeat(127));
        let plain: &'static str = Box::leak("x".repeat(256).into_boxed_str());
        assert_eq!(text_of(invalid(plain)), "x".repeat(255));
    }

    #[test]
    fn a_panic_keeps_its_message() {
        let borrowed = of_panic(&"one");
        assert_eq!(borrowed.kind(), Kind::Internal);
        assert_eq!(text_of(borrowed), "a fault of edgelog: one");
        let owned = of_panic(&String::from("two"));
        assert_eq!(text_of(owned), "a fault of edgelog: two");
        assert_eq!(text_of(of_panic(&3)), "a fault of edgelog: no message");
    }
}
