//! Tests of the plan: single cases, and random histories of conditions, failures and restarts.

use std::collections::BTreeSet;

use super::*;
use fastrand::Rng;

const DELAY: Duration = Duration::from_secs(300);

/// A simulated clock.
fn at(start: Instant, seconds: u64) -> Moment {
    Moment {
        instant: start + Duration::from_secs(seconds),
        time: UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds),
    }
}

fn degraded(id: &str) -> Condition {
    Condition {
        kind: ConditionKind::TenantDegraded,
        subject: Some(id.into()),
        message: format!("{id} has errors"),
    }
}

/// A plan with a receiver that works, and a clock.
struct Rig {
    plan: AlertPlan,
    start: Instant,
}

impl Rig {
    fn new(delay: Duration, repeat: Option<Duration>) -> Self {
        Self {
            plan: AlertPlan::new(delay, repeat),
            start: Instant::now(),
        }
    }

    fn observe(&mut self, seconds: u64, ids: &[&str]) {
        let conditions = ids.iter().map(|id| degraded(id)).collect();
        let now = at(self.start, seconds);
        self.plan.observe(conditions, |_| false, now);
    }

    /// Returns what is sent at a time, as `+a` for a problem and `-a` for its end.
    fn send(&mut self, seconds: u64) -> Vec<String> {
        let now = at(self.start, seconds);
        let lines = self.plan.next_message(now);
        if !lines.is_empty() {
            self.plan.delivered(&lines, now);
        }
        shown(&lines)
    }

    fn step(&mut self, seconds: u64, ids: &[&str]) -> Vec<String> {
        self.observe(seconds, ids);
        self.send(seconds)
    }
}

fn shown(lines: &[AlertLine]) -> Vec<String> {
    let sign = |line: &AlertLine| if line.ended.is_some() { '-' } else { '+' };
    let name = |line: &AlertLine| line.key.1.as_deref().unwrap_or("server").to_owned();
    lines
        .iter()
        .map(|line| format!("{}{}", sign(line), name(line)))
        .collect()
}

const NOTHING: [&str; 0] = [];

#[test]
fn alert_is_sent_once_after_its_delay_and_resolved_once() {
    let mut rig = Rig::new(DELAY, None);
    assert_eq!(rig.step(0, &["a"]), NOTHING);
    assert_eq!(rig.step(299, &["a"]), NOTHING);
    assert_eq!(rig.step(300, &["a"]), ["+a"]);
    assert_eq!(rig.step(301, &["a"]), NOTHING);
    assert_eq!(rig.step(9_000, &["a"]), NOTHING);
    assert_eq!(rig.step(10_000, &[]), NOTHING);
    assert_eq!(rig.step(10_300, &[]), ["-a"]);
    assert_eq!(rig.step(20_000, &[]), NOTHING);
    assert!(rig.plan.alerts.is_empty());
}

#[test]
fn flapping_condition_is_one_alert() {
    let mut rig = Rig::new(DELAY, None);
    // Never present for long enough.
    for round in 0..20 {
        assert_eq!(rig.step(round * 200, &["a"]), NOTHING);
        assert_eq!(rig.step(round * 200 + 100, &[]), NOTHING);
    }
    assert_eq!(rig.step(5_000, &["a"]), NOTHING);
    assert_eq!(rig.step(5_300, &["a"]), ["+a"]);
    // Never gone for long enough.
    for round in 0..20 {
        assert_eq!(rig.step(6_000 + round * 200, &[]), NOTHING);
        assert_eq!(rig.step(6_100 + round * 200, &["a"]), NOTHING);
    }
    assert_eq!(rig.step(11_000, &[]), NOTHING);
    assert_eq!(rig.step(11_300, &[]), ["-a"]);
}

#[test]
fn failed_receiver_is_tried_later_each_time_and_gets_the_alert_once() {
    let mut rig = Rig::new(Duration::ZERO, None);
    let mut now = 0;
    for wait in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        rig.observe(now, &["a"]);
        let moment = at(rig.start, now);
        assert_eq!(shown(&rig.plan.next_message(moment)), ["+a"]);
        rig.plan.failed(None, moment);
        let retry = rig.plan.next_due().expect("a time");
        assert_eq!((retry - moment.instant).as_secs(), wait);
        assert!(
            rig.plan
                .next_message(at(rig.start, now + wait - 1))
                .is_empty()
        );
        assert_eq!(rig.plan.unsent(moment), 1);
        now += wait;
    }
    assert_eq!(rig.send(now), ["+a"]);
    assert_eq!(rig.send(now), NOTHING);
    assert_eq!(rig.plan.unsent(at(rig.start, now)), 0);
}

#[test]
fn receiver_chooses_a_longer_wait_within_limits() {
    for (wanted, waited) in [(0, 1), (30, 30), (86_400, 3_600)] {
        let mut rig = Rig::new(Duration::ZERO, None);
        rig.observe(0, &["a"]);
        let wanted = Some(Duration::from_secs(wanted));
        rig.plan.failed(wanted, at(rig.start, 0));
        let retry = rig.plan.next_due().expect("a time");
        assert_eq!((retry - rig.start).as_secs(), waited);
    }
}

#[test]
fn problem_that_ends_while_the_receiver_is_down_is_told_as_resolved() {
    let mut rig = Rig::new(DELAY, None);
    rig.observe(0, &["a"]);
    rig.observe(400, &["a"]);
    rig.plan.failed(None, at(rig.start, 400));
    rig.observe(500, &[]);
    assert_eq!(rig.step(900, &[]), ["-a"]);
    assert_eq!(rig.step(2_000, &[]), NOTHING);
}

#[test]
fn ended_alerts_of_a_receiver_that_stays_down_are_bounded() {
    let mut rig = Rig::new(Duration::ZERO, None);
    for number in 0..10 * MAX_ENDED_ALERTS {
        rig.observe(number as u64, &[&number.to_string()]);
    }
    assert_eq!(rig.plan.alerts.len(), MAX_ENDED_ALERTS + 1);
    let newest = rig.plan.alerts.values().map(|alert| alert.since).min();
    assert!(
        newest > Some(at(rig.start, 800).time),
        "the oldest are dropped"
    );
}

#[test]
fn many_alerts_are_sent_in_several_messages() {
    let mut rig = Rig::new(Duration::ZERO, None);
    let ids: Vec<String> = (0..45).map(|number| number.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    rig.observe(0, &ids);
    let sizes = [rig.send(0), rig.send(0), rig.send(0), rig.send(0)].map(|sent| sent.len());
    assert_eq!(sizes, [20, 20, 5, 0]);
}

#[test]
fn restart_sends_nothing_again_and_resolves_what_ended_meanwhile() {
    let mut rig = Rig::new(DELAY, None);
    rig.observe(0, &["a", "b"]);
    assert_eq!(rig.step(300, &["a", "b"]), ["+a", "+b"]);
    let saved = rig.plan.save();
    let mut rig = Rig::new(DELAY, None);
    rig.plan.restore(&saved, at(rig.start, 0));
    assert_eq!(rig.step(0, &["a"]), NOTHING);
    assert_eq!(rig.step(300, &["a"]), ["-b"]);
    assert_eq!(rig.step(9_000, &["a"]), NOTHING);
    for damaged in [&b""[..], b"[]", b"{}", b"[{\"name\":\"Unknown\"}]"] {
        let mut plan = AlertPlan::new(DELAY, None);
        plan.restore(damaged, at(rig.start, 0));
        assert!(plan.alerts.is_empty());
    }
}

#[test]
fn alert_of_a_tenant_that_is_not_rendered_yet_stays() {
    let mut rig = Rig::new(Duration::ZERO, None);
    assert_eq!(rig.step(0, &["a"]), ["+a"]);
    let now = at(rig.start, 10);
    rig.plan.observe(Vec::new(), |_| true, now);
    assert_eq!(rig.send(10), NOTHING);
    assert_eq!(rig.step(11, &[]), ["-a"]);
}

#[test]
fn receiver_that_wants_to_hear_again_hears_again() {
    let mut rig = Rig::new(Duration::ZERO, Some(Duration::from_secs(60)));
    assert_eq!(rig.step(0, &["a"]), ["+a"]);
    assert_eq!(rig.step(59, &["a"]), NOTHING);
    assert_eq!(rig.step(60, &["a"]), ["+a"]);
    assert_eq!(rig.step(61, &["a"]), NOTHING);
    assert_eq!(rig.step(62, &[]), ["-a"]);
    assert_eq!(rig.step(200, &[]), NOTHING);
}

/// Runs a random history. The receiver's alerts are always those that an attentive reader of its messages believes in.
fn simulate(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let delay = [0, 30, 300][random.usize(..3)];
    let mut rig = Rig::new(Duration::from_secs(delay), None);
    let names = ["a", "b", "c", "d"];
    let mut present: BTreeSet<&str> = BTreeSet::new();
    // The start of each condition's current presence, and the receiver's alerts.
    let mut turned: BTreeMap<&str, u64> = BTreeMap::new();
    let mut believed: BTreeSet<String> = BTreeSet::new();
    let mut now = 0;
    for _ in 0..400 {
        now += random.u64(..40);
        match random.u64(..10) {
            0..=2 => {
                let name = names[random.usize(..4)];
                if !present.remove(name) {
                    present.insert(name);
                }
                turned.insert(name, now);
            }
            3 => {
                let moment = at(rig.start, now);
                let saved = rig.plan.save();
                rig.plan = AlertPlan::new(Duration::from_secs(delay), None);
                rig.plan.restore(&saved, moment);
            }
            _ => {}
        }
        let ids: Vec<&str> = present.iter().copied().collect();
        rig.observe(now, &ids);
        let moment = at(rig.start, now);
        let lines = rig.plan.next_message(moment);
        if lines.is_empty() {
            continue;
        }
        if random.u64(..3) == 0 {
            rig.plan
                .failed(Some(Duration::from_secs(random.u64(..90))), moment);
            continue;
        }
        rig.plan.delivered(&lines, moment);
        for line in &lines {
            let name = line.key.1.as_deref().unwrap();
            if line.ended.is_some() {
                believed.remove(name);
                assert!(!present.contains(name), "{seed}: resolved while present");
                assert!(now - turned[name] >= delay, "{seed}: resolved too early");
            } else {
                assert!(present.contains(name), "{seed}: sent while gone");
                assert!(believed.insert(name.to_owned()), "{seed}: sent twice");
            }
        }
    }
    // Everything calms down, and the receiver works.
    let ids: Vec<&str> = present.iter().copied().collect();
    rig.observe(now, &ids);
    now += 10_000;
    rig.observe(now, &ids);
    for said in rig.send(now) {
        match said.split_at(1) {
            ("-", name) => {
                believed.remove(name);
            }
            (_, name) => assert!(believed.insert(name.to_owned()), "{seed}: sent twice"),
        }
    }
    let present: BTreeSet<String> = present.into_iter().map(ToOwned::to_owned).collect();
    assert_eq!(believed, present, "{seed}");
    assert_eq!(rig.plan.next_due(), None, "{seed}");
}

#[test]
fn receiver_knows_the_truth_after_any_history() {
    for seed in 0..200 {
        simulate(seed);
    }
}
