//! The same walks in vectors of 128, 256 and 512 bits, and with stores past the caches.

use super::line::{FILL, Line, Walk};
use crate::mix::Mix;

/// One module of kernels for one width of vectors.
macro_rules! kernels {
    ($name:ident, $feature:literal, $vector:ident,
     $load:ident, $store:ident, $stream:ident, $add:ident, $splat:ident) => {
        pub(super) mod $name {
            use std::arch::x86_64::{_mm_sfence, $add, $load, $splat, $store, $stream, $vector};

            use super::{FILL, Line, Mix, Walk};

            /// Vectors of a line.
            const VECTORS: usize = size_of::<Line>() / size_of::<$vector>();

            /// The walk of a mix.
            pub(in super::super) fn walk(mix: Mix) -> Walk {
                match mix {
                    Mix::Reads => update::<1, false>,
                    Mix::ThreeToOne => update::<3, true>,
                    Mix::TwoToOne => update::<2, true>,
                    Mix::OneToOne => update::<1, true>,
                    Mix::Writes => fill::<false>,
                    Mix::NonTemporal => fill::<true>,
                    Mix::NonTemporalCopy => copy,
                }
            }

            /// Reads all lines and, with `STORE`, adds one to every word of the last line of each group.
            #[target_feature(enable = $feature)]
            fn update<const LINES: usize, const STORE: bool>(lines: &mut [Line]) -> u64 {
                let (mut sums, one) = ([$splat(0); VECTORS], $splat(1));
                for group in lines.as_chunks_mut::<LINES>().0 {
                    for (place, line) in group.iter_mut().enumerate() {
                        let start = std::ptr::from_mut(line).cast::<$vector>();
                        for (vector, sum) in sums.iter_mut().enumerate() {
                            // SAFETY: a line holds this many vectors and is aligned to any of them.
                            unsafe {
                                let value = $load(start.add(vector));
                                *sum = $add(*sum, value);
                                if STORE && place == LINES - 1 {
                                    $store(start.add(vector), $add(value, one));
                                }
                            }
                        }
                    }
                }
                sum(sums)
            }

            /// Writes every word, past the caches or by ordinary stores.
            #[target_feature(enable = $feature)]
            fn fill<const PAST_CACHES: bool>(lines: &mut [Line]) -> u64 {
                let value = $splat(FILL.cast_signed());
                for line in lines {
                    let start = std::ptr::from_mut(line).cast::<$vector>();
                    for vector in 0..VECTORS {
                        // SAFETY: a line holds this many vectors and is aligned to any of them.
                        unsafe {
                            let place = start.add(vector);
                            if PAST_CACHES { $stream(place, value) } else { $store(place, value) }
                        }
                    }
                }
                _mm_sfence();
                0
            }

            /// Copies the first half of the lines to the second, past the caches.
            #[target_feature(enable = $feature)]
            fn copy(lines: &mut [Line]) -> u64 {
                let mut sums = [$splat(0); VECTORS];
                let (from, to) = lines.split_at_mut(lines.len() / 2);
                for (from, to) in from.iter().zip(to) {
                    let from = std::ptr::from_ref(from).cast::<$vector>();
                    let to = std::ptr::from_mut(to).cast::<$vector>();
                    for (vector, sum) in sums.iter_mut().enumerate() {
                        // SAFETY: a line holds this many vectors and is aligned to any of them.
                        unsafe {
                            let value = $load(from.add(vector));
                            *sum = $add(*sum, value);
                            $stream(to.add(vector), value);
                        }
                    }
                }
                _mm_sfence();
                sum(sums)
            }

            fn sum(sums: [$vector; VECTORS]) -> u64 {
                // SAFETY: a line's worth of vectors and of words have the same size, and any bits are words.
                let words: [u64; size_of::<Line>() / 8] = unsafe { std::mem::transmute(sums) };
                words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
            }
        }
    };
}

kernels!(sse2, "sse2", __m128i, _mm_load_si128, _mm_store_si128, _mm_stream_si128, _mm_add_epi64, _mm_set1_epi64x);
kernels!(
    avx2,
    "avx2",
    __m256i,
    _mm256_load_si256,
    _mm256_store_si256,
    _mm256_stream_si256,
    _mm256_add_epi64,
    _mm256_set1_epi64x
);
kernels!(
    avx512,
    "avx512f",
    __m512i,
    _mm512_load_si512,
    _mm512_store_si512,
    _mm512_stream_si512,
    _mm512_add_epi64,
    _mm512_set1_epi64
);
