//! CRC-32, the checksum of everything on the medium: by the processor where it has instructions
//! for it, else by a table that is small enough for the cache of a gateway.

/// The checksum of bytes.
#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u32 {
    resume(0, bytes)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use by_processor::resume;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use by_table::resume;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod by_processor {
    /// The checksum of bytes that follow others with the checksum `start`.
    #[inline]
    pub(crate) fn resume(start: u32, bytes: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(start);
        hasher.update(bytes);
        hasher.finalize()
    }
}

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod by_table {
    #![expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "a byte is below 256, and the loops end there"
    )]

    /// The polynomial of Ethernet and zip, lowest power first.
    const POLYNOMIAL: u32 = 0xedb8_8320;

    /// What a byte adds to a checksum, when so many bytes follow it in a word of four.
    static TABLES: [[u32; 256]; 4] = tables();

    const fn tables() -> [[u32; 256]; 4] {
        let mut tables = [[0; 256]; 4];
        let mut byte = 0;
        while byte < 256 {
            let mut sum = byte as u32;
            let mut bits = 0;
            while bits < 8 {
                sum = (sum >> 1) ^ if sum & 1 == 0 { 0 } else { POLYNOMIAL };
                bits += 1;
            }
            tables[0][byte] = sum;
            byte += 1;
        }
        let mut follow = 1;
        while follow < 4 {
            byte = 0;
            while byte < 256 {
                let before: u32 = tables[follow - 1][byte];
                tables[follow][byte] = (before >> 8) ^ tables[0][(before & 255) as usize];
                byte += 1;
            }
            follow += 1;
        }
        tables
    }

    /// The checksum of bytes that follow others with the checksum `start`.
    pub(crate) fn resume(start: u32, bytes: &[u8]) -> u32 {
        let mut sum = !start;
        let mut words = bytes.chunks_exact(4);
        for word in &mut words {
            let [a, b, c, d] = sum.to_le_bytes();
            sum = TABLES[3][usize::from(a ^ word[0])]
                ^ TABLES[2][usize::from(b ^ word[1])]
                ^ TABLES[1][usize::from(c ^ word[2])]
                ^ TABLES[0][usize::from(d ^ word[3])];
        }
        for &byte in words.remainder() {
            let [low, ..] = sum.to_le_bytes();
            sum = (sum >> 8) ^ TABLES[0][usize::from(low ^ byte)];
        }
        !sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_that_of_the_standard() {
        assert_eq!(hash(b"123456789"), 0xcbf4_3926);
        assert_eq!(by_table::resume(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(hash(b""), 0);
    }

    #[test]
    fn both_ways_agree_from_every_start() {
        let bytes: Vec<u8> = (0..100_u32).map(|n| (n * n) as u8).collect();
        let mut start = 1;
        for size in 0..bytes.len() {
            let (bytes, _) = bytes.split_at(size);
            let sum = resume(start, bytes);
            assert_eq!(by_table::resume(start, bytes), sum, "{size} bytes");
            start = sum.rotate_left(5);
        }
    }
}
