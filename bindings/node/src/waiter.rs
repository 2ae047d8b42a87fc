//! The thread on which one reader waits. libuv's pool has four threads for everything; a wait
//! there would hold up the process's files and name look-ups.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::Arc;

use edgelog_abi::{Result, Status};

use crate::failure::{broken, message};
use crate::host::Host;
use crate::reader::{Given, ReaderShared};

/// What JavaScript is told at the end of a wait.
pub struct Answer {
    /// Of the wait.
    pub id: u32,
    /// Why there are no records, if there are none.
    pub status: i32,
    /// Records, see [`crate::unpacked`].
    pub packed: Option<Vec<u8>>,
    /// What went wrong, see [`crate::failure`].
    pub failure: Option<String>,
}

struct Request {
    id: u32,
    max: u32,
    timeout_ms: u32,
}

/// A running thread. Without it, the thread ends after the wait under way.
pub struct Waiter {
    requests: Sender<Request>,
}

impl Waiter {
    /// Starts a thread for `reader`.
    pub fn start(host: &Arc<Host>, reader: &Arc<ReaderShared>) -> Result<Self> {
        let (requests, received) = mpsc::channel();
        let (own_host, own_reader) = (Arc::clone(host), Arc::clone(reader));
        host.start(reader, move || run(&own_host, &own_reader, &received))?;
        Ok(Waiter { requests })
    }

    /// Has the thread read; the answer comes under `id`.
    pub fn ask(&self, id: u32, max: u32, timeout_ms: u32) -> Result<()> {
        self.requests
            .send(Request {
                id,
                max,
                timeout_ms,
            })
            .map_err(|_| broken("the thread that waits has ended"))
    }
}

fn run(host: &Host, reader: &ReaderShared, requests: &Receiver<Request>) {
    while let Ok(Request {
        id,
        max,
        timeout_ms,
    }) = requests.recv()
    {
        let mut answer = Answer {
            id,
            status: Status::OK.code(),
            packed: None,
            failure: None,
        };
        match reader.read(max, timeout_ms) {
            Ok(Given::Records(packed)) => answer.packed = Some(packed),
            Ok(Given::Nothing(status)) => answer.status = status.code(),
            Err(error) => answer.failure = Some(message(&error)),
        }
        host.answer(answer);
    }
}
