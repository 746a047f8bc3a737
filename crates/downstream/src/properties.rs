//! Properties of errands that the library's strategies generate.

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{MemoryStore, Outcome, Put};
use agent_checkpoint::strategies::{
    any_shape, as_agents_write_it, oversized, valid, with_unknown_fields,
};
use agent_checkpoint::{CheckpointStoreExt, Key, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::Errand;

impl Arbitrary for Errand {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        let stops = || vec("[a-z]{3,9}", 0..5);
        let pace = proptest::option::of(0..86_400_u32);
        (stops(), stops(), pace, any::<Option<Timestamp>>())
            .prop_map(|(made, left, seconds_per_stop, changed)| Errand {
                made,
                left,
                seconds_per_stop,
                changed,
                ..Errand::default()
            })
            .boxed()
    }
}

proptest! {
    #[test]
    fn what_was_saved_is_read(errand in valid::<Errand>()) {
        let store = MemoryStore::new();
        let (errands, key) = (store.checkpoints::<Errand>(), Key::new("shopping")?);
        errands.create(&key, &errand)?;
        let read = errands.get(&key)?.checkpoint;
        prop_assert_eq!((read.made, read.left), (errand.made, errand.left));
    }

    #[test]
    fn a_stop_that_is_made_costs_nothing_else(text in with_unknown_fields::<Errand>()) {
        let mut document = Document::from_text(text)?;
        let members = document.root().members().count();
        document.set("/left", &["bank"])?;
        prop_assert_eq!(document.root().members().count(), members);
    }

    #[test]
    fn whatever_is_an_object_is_judged(text in any_shape::<Errand>()) {
        let document = Document::from_text(text)?;
        let reading = document.read::<Errand>()?;
        if reading.violations.is_empty()
            && let Some(left) = document.get("/left")
        {
            prop_assert_eq!(left.elements().count(), reading.value.left.len());
        }
    }

    #[test]
    fn whatever_an_agent_wrote_survives(text in as_agents_write_it::<Errand>()) {
        let store = MemoryStore::new();
        let (errands, key) = (store.checkpoints::<Errand>(), Key::new("shopping")?);
        let document = Document::from_text(text)?;
        agent_checkpoint::store::CheckpointStore::put(&store, &key, Put::new(document))?;
        prop_assert_eq!(errands.update(&key, |_| {})?.outcome, Outcome::Unchanged);
    }

    #[test]
    fn a_large_one_is_saved_whole(errand in oversized::<Errand>()) {
        let store = MemoryStore::new();
        let (errands, key) = (store.checkpoints::<Errand>(), Key::new("shopping")?);
        // An errand has no `shrink`, so nothing may be dropped.
        let saved = errands.create(&key, &errand)?;
        prop_assert!(saved.truncation.dropped.is_empty());
        prop_assert_eq!(errands.get(&key)?.checkpoint.left, errand.left);
    }
}
