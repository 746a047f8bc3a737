//! `ckpt claim` and `ckpt release`.

use crate::project::{EXAMPLE, Project, TASK};

const AT: [&str; 2] = ["--now", "2026-03-02T09:00:00Z"];

fn with<'a>(words: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [words, more].concat()
}

#[test]
fn while_a_claim_stands_only_its_fence_opens() {
    let project = Project::with("t.json", TASK);
    let claim = with(&["claim", "t.json", "--agent", "one"], &AT);
    let fence = project.expect(0, &claim).out;
    let fence = fence.trim_end();
    // The same owner gets the same fence.
    assert_eq!(project.expect(0, &claim).out.trim_end(), fence);

    let other = project.expect(4, &with(&["claim", "t.json", "--agent", "two"], &AT));
    assert!(
        other
            .error()
            .contains("claimed by one until 2026-03-02T09:15:00Z"),
        "{other:?}"
    );
    for words in [
        vec!["set", "t.json", "/phase=\"review\""],
        vec!["block", "CI", "--store", "t.json"],
        vec!["archive", "t.json", "--as", "crashed"],
    ] {
        let refused = project.expect(4, &with(&words, &AT));
        assert!(refused.error().contains("claimed by one"), "{refused:?}");
        let wrong = project.expect(4, &with(&words, &["--fence", "1", AT[0], AT[1]]));
        assert!(
            wrong.error().contains("one has a later claim on the task"),
            "{wrong:?}"
        );
    }
    assert_eq!(project.read("t.json"), TASK);
    let block = ["block", "CI", "--store", "t.json", "--fence", fence];
    project.expect(0, &with(&block, &AT));
    assert!(project.read("t.json").contains("CI"));

    let holder = project.expect(0, &with(&["claim", "t.json"], &AT)).out;
    assert!(
        holder.contains("claimed by one") && holder.contains(fence),
        "{holder}"
    );
    project.expect(0, &with(&["release", "t.json", "--fence", fence], &AT));
    let late = project.expect(
        4,
        &with(&["unblock", "--store", "t.json", "--fence", fence], &AT),
    );
    assert!(late.error().contains("one released the claim"), "{late:?}");
    project.expect(0, &with(&["unblock", "--store", "t.json"], &AT));
}

#[test]
fn who_was_taken_for_dead_does_not_write_again() {
    let project = Project::with("t.json", TASK);
    let first = project
        .expect(0, &["claim", "t.json", "--agent", "one", "--for", "1h"])
        .out;
    let taken = project
        .expect(0, &["claim", "t.json", "--agent", "two", "--take-over"])
        .out;
    let number = |text: &str| text.trim_end().parse::<u64>().unwrap();
    assert!(number(&taken) > number(&first));
    // Even by a report that changes nothing: the step is already in progress.
    for words in [&["note", "late"][..], &["step", "start", "Make b"]] {
        let of = ["--store", "t.json", "--fence", first.trim_end()];
        let refused = project.expect(4, &[words, &of].concat());
        assert!(
            refused
                .error()
                .contains("two has a later claim on the task"),
            "{refused:?}"
        );
    }
    assert_eq!(project.read("t.json"), TASK);
}

#[test]
fn a_claim_that_ran_out_can_be_renewed_until_another_takes_the_task() {
    let project = Project::with("t.json", TASK);
    let at = |time: &'static str| ["--now", time];
    let claim = with(&["claim", "t.json", "--agent", "one", "--for", "60s"], &AT);
    let fence = project.expect(0, &claim).out;
    let note = [
        "note",
        "x",
        "--store",
        "t.json",
        "--fence",
        fence.trim_end(),
    ];
    let late = project.expect(4, &with(&note, &at("2026-03-02T09:01:00Z")));
    assert!(
        late.error()
            .contains("expired at 2026-03-02T09:01:00Z; renew it"),
        "{late:?}"
    );
    // With the right fence, but by another agent.
    let renew = ["claim", "t.json", "--renew", "--fence", fence.trim_end()];
    let other = project.expect(4, &[&renew[..], &["--agent", "two"]].concat());
    assert!(
        other.error().contains("the claim belongs to one"),
        "{other:?}"
    );
    let renewed = project
        .expect(0, &with(&renew, &at("2026-03-02T09:05:00Z")))
        .out;
    assert_eq!(renewed, fence);
    project.expect(0, &with(&note, &at("2026-03-02T09:06:00Z")));
    let other = with(
        &["claim", "t.json", "--agent", "two"],
        &at("2026-03-02T09:30:00Z"),
    );
    project.expect(0, &other);
    let refused = project.expect(4, &with(&renew, &at("2026-03-02T09:31:00Z")));
    assert!(
        refused
            .error()
            .contains("two has a later claim on the task"),
        "{refused:?}"
    );
}

#[test]
fn slots_are_claimed_one_by_one_and_set_changes_none_that_another_holds() {
    let project = Project::with("docs/builder-state.json", EXAMPLE);
    let file = "docs/builder-state.json";
    let claim = ["claim", file, "--slot", "active", "--agent", "one"];
    let fence = project.expect(0, &claim).out;
    let block = |slot| ["block", "CI", "--store", file, "--slot", slot];
    project.expect(4, &block("active"));
    let set = ["set", file, "/x=1"];
    project.expect(4, &set);
    project.expect(0, &with(&set, &["--fence", fence.trim_end()]));
    project.expect(0, &with(&block("active"), &["--fence", fence.trim_end()]));
    let json = project.expect(0, &with(&claim[..4], &["--json"])).json();
    assert_eq!(json["claim"]["owner"], "one");
    assert_eq!(json["stands"], true);
    assert_eq!(json["slot"], "active");

    // Two claims are valid: each owner changes its own slot, and the rest of the file.
    let other = ["claim", file, "--slot", "top", "--agent", "two"];
    let other = project.expect(0, &other).out;
    let (one, two) = (fence.trim_end(), other.trim_end());
    project.expect(4, &["set", file, "/x=2"]);
    let blockers = "/activePrd/checkpoint/blockers=[]";
    project.expect(0, &["set", file, blockers, "--fence", one]);
    project.expect(0, &["set", file, "/x=2", "--fence", two]);
    let refused = project.expect(
        4,
        &[
            "set",
            file,
            "/activePrd/checkpoint/phase=\"x\"",
            "--fence",
            two,
        ],
    );
    assert!(refused.error().contains("one"), "{refused:?}");
}

#[test]
fn a_claim_needs_an_owner_and_a_release_a_fence() {
    let project = Project::with("t.json", TASK);
    let free = project.expect(0, &["claim", "t.json"]).out;
    assert_eq!(free, "not claimed; `ckpt claim --agent A` claims it\n");
    project.expect(2, &["claim", "t.json", "--take-over"]);
    project.expect(2, &["release", "t.json"]);
    let unknown = project.expect(4, &["release", "t.json", "--fence", "7"]);
    assert!(
        unknown.error().contains("no claim with this fence"),
        "{unknown:?}"
    );
    project.expect(2, &["claim", "t.json", "--agent", "a", "--for", "soon"]);
}

#[test]
fn a_refusal_names_the_options_that_go_on() {
    let project = Project::with("t.json", TASK);
    let claimed = project.expect(0, &with(&["claim", "t.json", "--agent", "one"], &AT));
    let fence = claimed.out.trim_end();
    for refused in [
        &["claim", "t.json", "--agent", "two"][..],
        &["note", "x", "--store", "t.json"],
        &["set", "t.json", "/x=1"],
    ] {
        let run = project.expect(4, &with(refused, &AT));
        for option in ["--fence N", "--agent A --take-over"] {
            assert!(run.error().contains(option), "{run:?}");
        }
    }
    // The caller may be the owner and have omitted its name.
    let run = project.ckpt(&with(&["resume", "t.json"], &AT));
    assert_eq!(run.code, 4, "{run:?}");
    for option in ["--agent and --session", "--fence", "--take-over"] {
        assert!(run.err.contains(option), "{run:?}");
    }
    let resume = with(&["resume", "t.json", "--fence", fence], &AT);
    assert_ne!(project.ckpt(&resume).code, 4);

    let late = ["--now", "2026-03-02T12:00:00Z"];
    let note = ["note", "x", "--store", "t.json", "--fence", fence];
    let run = project.expect(4, &with(&note, &late));
    assert!(
        run.error().contains("`ckpt claim --renew --fence N`"),
        "{run:?}"
    );

    let record = ".agent-checkpoint/claims/t.json.json";
    assert!(project.path(record).is_file());
    project.write(record, "{");
    let run = project.expect(2, &with(&note, &AT));
    assert!(
        run.error()
            .ends_with("take the task over with a new claim (`ckpt claim --agent A --take-over`)"),
        "{run:?}"
    );
    project.expect(
        0,
        &with(&["claim", "t.json", "--agent", "two", "--take-over"], &AT),
    );
}

#[test]
fn a_claim_of_nobody_or_for_no_time_is_a_wrong_argument() {
    let project = Project::with("t.json", TASK);
    for wrong in [
        ["--agent", ""],
        ["--agent", " "],
        ["--session", ""],
        ["--for", "0s"],
        ["--for", "30000000years"],
    ] {
        let run = project.expect(2, &with(&["claim", "t.json"], &wrong));
        assert!(run.error().contains(wrong[0]), "{run:?}");
    }
    assert_eq!(project.names(), ["t.json"]);
}
