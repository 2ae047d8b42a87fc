//! Lists that calls give out: each entry as the caller gets it, with the names that entries point
//! to. What the functions of every such noun do is here.

use crate::error::edgelog_error;
use crate::failure::Failure;
use crate::guard::guard;
use crate::handle::{self, Handle};
use crate::input::Place;
use crate::names::Names;
use crate::status::{edgelog_status, EDGELOG_END, EDGELOG_OK};
use crate::tagged::{self, Tagged};

/// What the handle of a list holds.
pub(crate) struct List<T> {
    pub entries: Vec<T>,
    /// How many there were; the list may have the first ones only.
    pub total: u64,
    /// What the entries point to.
    _names: Names,
}

impl<T> List<T> {
    /// What `show` makes of each that was found. The names that it shows stay with the list.
    pub(crate) fn of<F>(
        found: &[F],
        show: impl Fn(&F, &mut Names) -> Result<T, Failure>,
    ) -> Result<List<T>, Failure> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(found.len())?;
        let mut names = Names::default();
        for each in found {
            entries.push(show(each, &mut names)?);
        }
        Ok(List {
            total: entries.len() as u64,
            entries,
            _names: names,
        })
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }
}

/// How many entries a list has.
///
/// # Safety
/// ABI.md, "What a caller promises".
pub(crate) unsafe fn count<T, H: Handle<Value = List<T>>>(
    list: *const H,
    count: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: as this function asks for.
    unsafe {
        guard(error, || {
            let list = handle::enter(list)?;
            Place::at(count)?.put(list.count());
            Ok(EDGELOG_OK)
        })
    }
}

/// Gives one entry, from index 0.
///
/// # Safety
/// ABI.md, "What a caller promises".
pub(crate) unsafe fn get<T: Tagged, H: Handle<Value = List<T>>>(
    list: *const H,
    index: u32,
    entry: *mut T,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: as this function asks for.
    unsafe {
        guard(error, || {
            let list = handle::enter(list)?;
            tagged::check(entry)?;
            let Some(found) = list.entries.get(index as usize) else {
                return Ok(EDGELOG_END);
            };
            tagged::give(entry, *found);
            Ok(EDGELOG_OK)
        })
    }
}

/// Frees a list and its names. NULL is fine.
///
/// # Safety
/// ABI.md, "What a caller promises".
pub(crate) unsafe fn close<H: Handle>(list: *mut H, error: *mut edgelog_error) -> edgelog_status {
    // SAFETY: as this function asks for.
    unsafe {
        guard(error, || {
            if !list.is_null() {
                handle::close(list, |_| Ok(()))?;
            }
            Ok(EDGELOG_OK)
        })
    }
}
