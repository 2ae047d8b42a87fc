//! What the scenarios call records, and the offsets that they have here: the n-th that was added
//! has offset n - 1.

/// `ms-seq`.
type Id = (u64, u64);

fn parse(text: &str, seq: u64) -> Id {
    let (ms, rest) = match text.split_once('-') {
        Some((ms, rest)) => (ms, rest.parse().unwrap()),
        None => (text, seq),
    };
    (ms.parse().unwrap(), rest)
}

#[derive(Default)]
pub struct Ids(Vec<String>);

impl Ids {
    pub fn add(&mut self, id: &str) {
        self.0.push(id.to_owned());
    }

    pub fn of(&self, offset: u64) -> &str {
        &self.0[offset as usize]
    }

    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// The offset of a record, or one where none is.
    pub fn offset(&self, id: &str) -> u64 {
        let at = self.0.iter().position(|one| one == id);
        at.map_or(1 << 40, |at| at as u64)
    }

    /// The first offset whose record is not before this id.
    pub fn from(&self, id: &str) -> u64 {
        let start = parse(id, 0);
        let before = self.0.iter().filter(|one| parse(one, 0) < start);
        before.count() as u64
    }

    /// The first offset whose record is behind this id.
    pub fn behind(&self, id: &str, seq: u64) -> u64 {
        let end = parse(id, seq);
        let before = self.0.iter().filter(|one| parse(one, 0) <= end);
        before.count() as u64
    }
}
