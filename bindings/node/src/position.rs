//! Where a record landed, as one JavaScript value.
//!
//! A number is by far the cheapest thing to return, and it holds 53 bits: ten for the partition,
//! 43 for the offset. Only an offset beyond that needs a `BigInt` (partition above 64 bits of
//! offset). `lib/position.cjs` takes both apart.

use edgelog_abi::Position;
use napi::bindgen_prelude::*;

const OFFSET_BITS: u32 = 43;
const PARTITION_BITS: u32 = 10;

/// `position` as a number or a `BigInt`.
pub fn crossing(position: Position) -> Either<f64, BigInt> {
    let Position { partition, offset } = position;
    if offset >> OFFSET_BITS == 0 && partition >> PARTITION_BITS == 0 {
        // Exact: below 2^53.
        Either::A(((u64::from(partition) << OFFSET_BITS) | offset) as f64)
    } else {
        Either::B(BigInt {
            sign_bit: false,
            words: vec![offset, u64::from(partition)],
        })
    }
}
