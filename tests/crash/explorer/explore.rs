//! From the calls of a program to the states that a crash may leave.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::common::places;

use super::disk::{Depth, Disk};
use super::step::Step;
use super::tree::Tree;

/// A state after a power loss.
pub(crate) struct State {
    pub(crate) tree: Tree,
    /// How many calls were made.
    pub(crate) calls: usize,
    /// How many acts were acknowledged.
    pub(crate) acknowledged: usize,
}

/// Every state that a power loss after each of the calls may leave, once for each number of acknowledged acts. Starts
/// when `from` acts are acknowledged.
pub(crate) fn explore(mut disk: Disk, steps: &[Step], from: usize, depth: Depth) -> Vec<State> {
    let mut states = Vec::new();
    // By hash: there are tens of thousands of trees, and most occur many times.
    let mut seen: HashSet<(usize, u64)> = HashSet::new();
    let hasher = RandomState::new();
    let mut acknowledged = 0;
    let mut places = places().peekable();
    for calls in 0..=steps.len() {
        let is_place = places.next_if_eq(&calls).is_some() || calls == steps.len();
        if acknowledged >= from && (is_place || depth != Depth::Part) {
            for tree in disk.crashes(depth) {
                if seen.insert((acknowledged, hasher.hash_one(&tree))) {
                    states.push(State {
                        tree,
                        calls,
                        acknowledged,
                    });
                }
            }
        }
        let Some(step) = steps.get(calls) else {
            break;
        };
        disk.apply(step);
        acknowledged += usize::from(*step == Step::Acknowledged);
    }
    states
}
