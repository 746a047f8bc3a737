//! `ckpt`.
fn main() {}
