//! A host file: a row for each checkpoint in it.

use std::path::Path;

use super::folder::Surroundings;
use super::scan::Scan;
use super::survey::Found;
use super::{Place, Row, RowState, WhyLeftOut, claims};
use crate::checkpoint::{Key, Timestamp};
use crate::formats::Format;
use crate::formats::builder_state::Slot;
use crate::json::Document;
use crate::store::TaskContext;

impl Scan<'_> {
    pub(super) fn host(
        &mut self,
        path: &Path,
        host: &Document,
        format: &Format,
        around: &Surroundings,
    ) {
        let places = Slot::places(host);
        let heartbeat = host.get("/lastHeartbeat").and_then(|node| node.as_str());
        let heartbeat = heartbeat.map(Timestamp::parse);
        let mut any = false;
        for place in places.into_iter().filter(|place| place.occupied) {
            any = true;
            let at = Place::file(path).with_slot(super::bounded::text(&place.slot.to_string()));
            let Some(document) = host.extract(&place.pointer) else {
                let reason = "no checkpoint object is where one belongs".to_owned();
                let mut row = Row::new(at, RowState::Unreadable { reason });
                row.format = Some(format.name);
                row.task = super::bounded::said(place.task.as_deref());
                self.push(row);
                continue;
            };
            let context = TaskContext {
                task: place.task.clone(),
                heartbeat: heartbeat.clone(),
                ..TaskContext::default()
            };
            let found = Found {
                place: at,
                document: &document,
                format: *format,
                key: None,
                id: None,
                names: None,
                context,
                copy: around.copy_of(path, &place.slot.to_string()),
            };
            let slot = place.key();
            let beside = |scan: &mut Self, _: &Key, present: &claims::Present<'_>| match slot {
                Ok(slot) if around.has_store => claims::of_slot(path, &slot, present, scan),
                _ => present.without_store(),
            };
            self.checkpoint(found, None, beside);
        }
        if !any {
            self.leave_out(path.display(), WhyLeftOut::NoCheckpoint);
        }
    }
}
