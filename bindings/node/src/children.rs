//! Readers and consumers that hold files of a log. Closing the log makes them useless, but only the
//! garbage collector would close their files, some time later: nothing could be unmounted until
//! then.

use std::sync::{Arc, Mutex, Weak};

use crate::host::lock;

/// Something that holds files.
pub trait Release: Send + Sync {
    /// Lets go of them, now or when the call under way ends.
    fn release(&self);

    /// Lets go of them now, and waits for the call under way, which ends soon.
    fn finish(&self) {
        self.release();
    }
}

/// What has to let go when the log is closed.
#[derive(Default)]
pub struct Children {
    all: Mutex<Vec<Weak<dyn Release>>>,
}

impl Children {
    /// Remembers `child` as long as it lives.
    pub fn adopt(&self, child: Weak<dyn Release>) {
        let mut all = lock(&self.all);
        all.retain(|other| other.strong_count() > 0);
        all.push(child);
    }

    /// Has all of them let go.
    pub fn release(&self) {
        for child in self.drain() {
            child.release();
        }
    }

    /// Has all of them let go now.
    pub fn finish(&self) {
        for child in self.drain() {
            child.finish();
        }
    }

    fn drain(&self) -> Vec<Arc<dyn Release>> {
        let all = lock(&self.all).drain(..).collect::<Vec<_>>();
        all.iter().filter_map(Weak::upgrade).collect()
    }
}
