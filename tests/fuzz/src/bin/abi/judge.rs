//! What must hold of every answer.

use crate::handles::{Argument, State};
use crate::memory::Block;
use crate::Fuzz;
use edgelog::error::edgelog_error;
use edgelog::status::*;
use std::mem::offset_of;

/// What is known of a call before it.
pub struct Call {
    pub name: &'static str,
    pub handle: Option<Argument>,
    /// Some argument is wrong, so that it has to be refused.
    pub wrong: bool,
    /// It goes on after the log was closed.
    pub outlives: bool,
}

impl Call {
    pub fn new(name: &'static str, handle: Argument) -> Call {
        Call {
            name,
            handle: Some(handle),
            wrong: false,
            outlives: false,
        }
    }

    pub fn wrong_if(mut self, wrong: bool) -> Call {
        self.wrong |= wrong;
        self
    }

    pub fn outliving(mut self) -> Call {
        self.outlives = true;
        self
    }
}

impl Fuzz<'_> {
    /// Calls with an error structure of some kind, and judges the answer.
    pub fn call(
        &mut self,
        call: Call,
        function: impl FnOnce(*mut edgelog_error) -> edgelog_status,
    ) -> edgelog_status {
        let name = call.name;
        let mut error = Block::sized(&mut self.rng, size_of::<edgelog_error>());
        let refused = error.wrong && !error.is_null();
        self.last = name;
        let status = function(error.at());
        assert!(
            self.documented.allows(name, status),
            "{name} answers {status}, which the header does not say: {}",
            error.text(offset_of!(edgelog_error, text))
        );
        if status < EDGELOG_OK && !error.wrong {
            assert!(error.well_filled(), "{name} writes over the error's end");
            let told = error.half(offset_of!(edgelog_error, status)) as i32;
            assert_eq!(told, status, "{name}");
            let text = error.half(offset_of!(edgelog_error, text));
            assert_ne!(text & 0xff, 0, "{name} answers {status} without a text");
        } else {
            assert!(
                error.unchanged(),
                "{name} answers {status}, writes an error"
            );
        }
        if refused {
            assert_eq!(status, EDGELOG_INVALID, "{name} with an impossible error");
        }
        let wrong = refused || call.wrong;
        assert!(!wrong || status != EDGELOG_OK, "{name} takes what is wrong");
        let Some(handle) = call.handle else {
            return status;
        };
        // Other arguments may be found wrong first, also some that are right elsewhere.
        let for_wrong = matches!(status, EDGELOG_INVALID | EDGELOG_TOO_LARGE);
        let gone = matches!(status, EDGELOG_CLOSED | EDGELOG_DELETED)
            || (handle.cancelled && status == EDGELOG_CANCELLED);
        let right = match handle.state {
            // A committed compaction is open and says CLOSED.
            State::Live if handle.cancelled => status != EDGELOG_MISUSE,
            State::Live => status != EDGELOG_CLOSED && status != EDGELOG_MISUSE,
            State::LogClosed => call.outlives || gone || for_wrong,
            State::Closed => status == EDGELOG_CLOSED || (wrong && for_wrong),
            State::OtherKind => status == EDGELOG_MISUSE || (wrong && for_wrong),
            State::Null | State::Misaligned => status == EDGELOG_INVALID || (wrong && for_wrong),
        };
        assert!(right, "{name} answers {status} for {:?}", handle.state);
        status
    }

    /// An output is written with OK, and only then.
    pub fn output(&self, block: &Block, status: edgelog_status) {
        let written = !block.unchanged();
        if status != EDGELOG_OK {
            assert!(!written, "{} answers {status}, writes an output", self.last);
        }
    }

    /// The same for a structure that says its size.
    pub fn structure(&self, block: &Block, status: edgelog_status) {
        self.output(block, status);
        if status == EDGELOG_OK {
            assert!(!block.unchanged(), "{} writes no output", self.last);
            assert!(block.well_filled(), "{} writes over the end", self.last);
        }
    }
}
