//! What compaction keeps, by the prefixes of keys.

use crate::error::{Error, Result};
use crate::limits::{KEEP_LAST_MAX, PREFIX_BYTES_MAX, RULES_MAX};

/// What compaction keeps of the records with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// All of them.
    #[default]
    All,
    /// The newest so many. A tombstone deletes those before it.
    Last(u32),
    /// Those that are not older, in milliseconds of the log's running time.
    For(u64),
    /// None.
    Nothing,
}

/// What compaction keeps of the records whose keys start with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeepRule {
    /// The prefix; the empty one is every key's.
    pub prefix: Vec<u8>,
    /// What is kept.
    pub keep: Keep,
}

/// The rule of a key: that with the longest prefix. Records without a key, and those of a key
/// without a rule, are kept.
pub(crate) fn keep_of(rules: &[KeepRule], key: Option<&[u8]>) -> Keep {
    let Some(key) = key else { return Keep::All };
    // Comparing no bytes at no address takes some processors as long as all the rest.
    let is_own = |prefix: &[u8]| prefix.is_empty() || key.starts_with(prefix);
    let own = rules.iter().filter(|rule| is_own(&rule.prefix));
    let longest = own.max_by_key(|rule| rule.prefix.len());
    longest.map_or(Keep::All, |rule| rule.keep)
}

/// Fails when these cannot be the rules of a topic.
pub(crate) fn check(rules: &[KeepRule]) -> Result<()> {
    if rules.len() > RULES_MAX {
        let text = format!("{} rules, at most {RULES_MAX}", rules.len());
        return Err(Error::invalid(text));
    }
    for (at, rule) in rules.iter().enumerate() {
        if rule.prefix.len() > PREFIX_BYTES_MAX {
            let text = format!(
                "a prefix of {} bytes, at most {PREFIX_BYTES_MAX}",
                rule.prefix.len()
            );
            return Err(Error::invalid(text));
        }
        if let Keep::Last(count) = rule.keep {
            if !(1..=KEEP_LAST_MAX).contains(&count) {
                let text = format!("keep the last {count}: must be 1 to {KEEP_LAST_MAX}");
                return Err(Error::invalid(text));
            }
        }
        let mut before = rules.iter().take(at);
        if before.any(|other| other.prefix == rule.prefix) {
            return Err(Error::invalid("two rules for one prefix"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(prefix: &str, keep: Keep) -> KeepRule {
        KeepRule {
            prefix: prefix.into(),
            keep,
        }
    }

    #[test]
    fn the_longest_prefix_decides() {
        let rules = [
            rule("", Keep::Last(1)),
            rule("name/", Keep::All),
            rule("name/x", Keep::Nothing),
        ];
        let keep = |key: &str| keep_of(&rules, Some(key.as_bytes()));
        assert_eq!(keep("other"), Keep::Last(1));
        assert_eq!(keep("name"), Keep::Last(1));
        assert_eq!(keep("name/"), Keep::All);
        assert_eq!(keep("name/xy"), Keep::Nothing);
        assert_eq!(keep_of(&rules, None), Keep::All);
        assert_eq!(keep_of(&rules[1..], Some(b"other")), Keep::All);
    }

    #[test]
    fn wrong_rules_are_refused() {
        assert!(check(&[]).is_ok());
        assert!(check(&[rule("", Keep::Last(0))]).is_err());
        assert!(check(&[rule("", Keep::Last(KEEP_LAST_MAX))]).is_ok());
        assert!(check(&[rule("", Keep::Last(KEEP_LAST_MAX + 1))]).is_err());
        assert!(check(&[rule("a", Keep::All), rule("a", Keep::Nothing)]).is_err());
        assert!(check(&[rule(&"x".repeat(PREFIX_BYTES_MAX + 1), Keep::All)]).is_err());
        assert!(check(&vec![KeepRule::default(); RULES_MAX + 1]).is_err());
    }
}
