//! Fuzz targets: one function each, that takes any bytes and panics where a promise of the library is broken.
//!
//! As tests they run on the seeds, and then on random bytes: for a second, or as long as `BOLERO_RANDOM_TEST_TIME_MS` says.
//! `README.md` tells how to run one for hours under a fuzzer that follows the coverage.
#![cfg(test)]
#![allow(
    unexpected_cfgs,
    reason = "`fuzzing` is set by whoever builds a target for a fuzzer"
)]

mod damage;
mod difference;
mod editing;
mod keys;
mod reading;
mod salvage;
mod seeds;

macro_rules! targets {
    ($($target:ident)*) => {$(
        #[test]
        fn $target() {
            if cfg!(fuzzing) {
                seeds::write_corpus(stringify!($target));
            } else {
                for (_, bytes) in seeds::seeds() {
                    $target::$target(bytes);
                }
            }
            bolero::check!()
                .with_max_len(4096)
                .for_each(|bytes: &[u8]| $target::$target(bytes));
        }
    )*};
}

targets! { difference editing keys reading salvage }
