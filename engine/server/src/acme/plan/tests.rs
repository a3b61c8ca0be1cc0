//! Tests of the plan with simulated time.

use std::time::UNIX_EPOCH;

use super::*;

const BOTH: [ChallengeMethod; 2] = [ChallengeMethod::Http, ChallengeMethod::TlsAlpn];

fn day(number: u32) -> SystemTime {
    UNIX_EPOCH + 20_000 * DAY + number * DAY
}

fn days(from: u32, to: u32) -> Lifetime {
    Lifetime {
        not_before: day(from),
        not_after: day(to),
    }
}

fn failure(kind: FailureKind) -> OrderFailure {
    OrderFailure::new(kind, "words")
}

#[test]
fn host_without_certificate_is_due_at_once_and_only_once() {
    let mut plan = NamePlan::new(None, day(0), 0.5);
    assert!(plan.is_due(day(0)));
    plan.begin(day(0));
    assert!(!plan.is_due(day(0)) && plan.attempts().is_in_flight);
    plan.succeed(days(0, 90), day(0), 0.0);
    assert!(!plan.is_due(day(59)));
    assert!(plan.is_due(day(60)));
}

#[test]
fn valid_certificate_is_not_ordered_again() {
    assert!(!NamePlan::new(Some(days(0, 90)), day(30), 0.5).is_due(day(30)));
    assert!(NamePlan::new(Some(days(0, 90)), day(61), 0.5).is_due(day(61)));
    assert!(NamePlan::new(Some(days(0, 90)), day(400), 0.5).is_due(day(400)));
    // With a clock that is behind, the certificate is not due.
    assert!(!NamePlan::new(Some(days(10, 100)), day(0), 0.5).is_due(day(0)));
}

#[test]
fn returning_host_without_its_certificate_is_due_again() {
    let mut plan = NamePlan::new(None, day(0), 0.5);
    plan.begin(day(0));
    plan.succeed(days(0, 90), day(0), 0.5);
    let plan = plan.without_order();
    assert!(!plan.is_due(day(1)));
    let lost = plan.without_certificate();
    // Not within the minute in which a host is not ordered twice.
    assert!(!lost.is_due(day(0)) && lost.is_due(day(1)));
    assert!(!lost.is_query_due(day(1)));
    // A failed host keeps waiting.
    let mut failed = NamePlan::new(None, day(0), 0.5);
    failed.begin(day(0));
    failed.fail(failure(FailureKind::Dns), day(0), 0.5, 2);
    let back = failed.without_order().without_certificate();
    assert!(!back.is_due(day(0)) && back.is_due(day(0) + 3 * MINUTE));
}

#[test]
fn six_day_certificates_are_renewed_after_four_days_spread_out() {
    let at = |chance| {
        let plan = NamePlan::new(Some(days(0, 6)), day(0), chance);
        plan.order_at().unwrap()
    };
    assert_eq!(at(0.0), day(4));
    assert_eq!(day(4).duration_since(at(0.99)).unwrap().as_secs() / 3600, 4);
}

#[test]
fn failed_host_tries_the_other_method_then_waits_longer_each_time() {
    let mut plan = NamePlan::new(None, day(0), 0.5);
    let mut now = day(0);
    let mut pauses = Vec::new();
    assert_eq!(plan.method(&BOTH), ChallengeMethod::Http);
    for _ in 0..14 {
        plan.begin(now);
        plan.fail(failure(FailureKind::Unreachable), now, 0.5, 2);
        let next = plan.next().unwrap();
        pauses.push(next.duration_since(now).unwrap());
        now = next;
    }
    assert_eq!(plan.method(&BOTH), ChallengeMethod::Http);
    assert_eq!(pauses[0], SECOND);
    assert_eq!(pauses[1], 2 * MINUTE);
    assert_eq!(pauses[2], 4 * MINUTE);
    assert!(pauses.is_sorted());
    assert_eq!(*pauses.last().unwrap(), DAY);
    plan.succeed(days(0, 90), now, 0.5);
    assert_eq!(plan.attempts().failure, None);
    assert_eq!(plan.method(&BOTH), ChallengeMethod::Http);
}

#[test]
fn dns_failure_waits_without_trying_the_other_method() {
    let mut plan = NamePlan::new(None, day(0), 0.5);
    plan.fail(failure(FailureKind::Dns), day(0), 0.0, 2);
    let pause = plan.next().unwrap().duration_since(day(0)).unwrap();
    assert_eq!(pause, 2 * MINUTE * 3 / 4);
    assert_eq!(plan.method(&BOTH), ChallengeMethod::TlsAlpn);
    assert_eq!(plan.attempts().failure.unwrap().0, FailureKind::Dns);
}

#[test]
fn retry_after_extends_the_pause() {
    let mut plan = NamePlan::new(None, day(0), 0.5);
    let mut limited = failure(FailureKind::RateLimited);
    limited.retry_after = Some(30 * HOUR);
    plan.fail(limited.clone(), day(0), 0.5, 2);
    assert_eq!(plan.next(), Some(day(0) + 30 * HOUR));
    // The pause is at most a week.
    limited.retry_after = Some(365 * DAY);
    plan.fail(limited, day(0), 0.5, 2);
    assert_eq!(plan.next(), Some(day(7)));
}

#[test]
fn failing_ca_pauses_all_orders_without_penalising_a_host() {
    let mut authority = AuthorityPlan::default();
    let mut plan = NamePlan::new(None, day(0), 0.5);
    let mut now = day(0);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        plan.begin(now);
        let down = failure(FailureKind::Authority);
        authority.fail(&down, now, 0.5);
        // A second order that was in flight.
        authority.fail(&down, now, 0.5);
        plan.fail(down, now, 0.5, 2);
        assert!(!authority.is_open(now));
        assert_eq!(plan.next(), Some(now + SECOND));
        let opens = authority.opens().unwrap();
        pauses.push(opens.duration_since(now).unwrap());
        now = opens;
        assert!(authority.is_open(now) && plan.is_due(now));
    }
    assert_eq!(pauses[..3], [2 * SECOND, 4 * SECOND, 8 * SECOND]);
    assert_eq!(*pauses.last().unwrap(), 15 * MINUTE);
    // A failed challenge shows that the CA works.
    authority.fail(&failure(FailureKind::Dns), now, 0.5);
    assert_eq!(authority, AuthorityPlan::default());
}

#[test]
fn suggested_window_moves_the_renewal() {
    let mut plan = NamePlan::new(Some(days(0, 90)), day(1), 0.5);
    plan.suggest((day(70), day(72)), 6 * HOUR, day(1), 0.5);
    assert_eq!(plan.order_at(), Some(day(71)));
    assert!(!plan.is_query_due(day(1) + 5 * HOUR));
    assert!(plan.is_query_due(day(1) + 6 * HOUR));
    // An unchanged window keeps the time.
    plan.suggest((day(70), day(72)), 6 * HOUR, day(1), 0.9);
    assert_eq!(plan.order_at(), Some(day(71)));
    // A past window, as after a revocation, is due now.
    plan.suggest((day(0), day(1)), 6 * HOUR, day(2), 0.5);
    assert!(plan.is_due(day(2)));
    // A window after the expiry is cut to 90 % of the lifetime.
    plan.suggest((day(200), day(201)), 6 * HOUR, day(2), 0.5);
    assert_eq!(plan.order_at(), Some(day(81)));
    // The interval of queries is bounded on both sides.
    plan.schedule_query(Duration::ZERO, day(2));
    assert!(!plan.is_query_due(day(2)));
    plan.schedule_query(1000 * DAY, day(2));
    assert!(plan.is_query_due(day(3)));
}

#[test]
fn expired_new_certificate_is_not_ordered_twice_within_a_minute() {
    let mut plan = NamePlan::new(None, day(0), 0.5);
    plan.begin(day(0));
    // The CA's clock is a year behind, so the new certificate has expired already.
    plan.succeed(days(0, 90), day(365), 0.5);
    assert!(!plan.is_due(day(365)));
    assert!(plan.is_due(day(365) + MINUTE));
}

#[test]
fn pause_ends_when_the_clock_is_set_back() {
    // The machine starts with its clock a year ahead: the CA's own certificate seems to have expired, and the order fails.
    let (ahead, right) = (day(365), day(0));
    let mut plan = NamePlan::new(None, ahead, 0.5);
    let mut authority = AuthorityPlan::default();
    plan.begin(ahead);
    let failed = failure(FailureKind::Authority);
    authority.fail(&failed, ahead, 0.5);
    plan.fail(failed, ahead, 0.5, 2);
    assert!(!authority.is_open(ahead) && !plan.is_due(ahead));
    assert!(authority.is_open(right) && plan.is_due(right));
    // From then on, pauses count from the correct time.
    authority.fail(&failure(FailureKind::Authority), right, 0.5);
    assert!(!authority.is_open(right) && authority.is_open(right + MINUTE));
    // Renewal queries behave in the same way.
    plan.succeed(days(0, 90), right, 0.5);
    plan.schedule_query(DAY, ahead);
    assert!(!plan.is_query_due(ahead) && plan.is_query_due(right));
}

#[test]
fn clock_that_jumps_forward_renews_at_once() {
    let mut plan = NamePlan::new(Some(days(0, 90)), day(1), 0.5);
    assert!(!plan.is_due(day(1)) && plan.is_due(day(400)));
    // A pause that ended long ago has no effect.
    plan.begin(day(1));
    plan.fail(failure(FailureKind::RateLimited), day(1), 0.5, 2);
    assert!(plan.is_due(day(400)));
}

#[test]
fn removed_host_is_forgotten_a_day_after_its_wait() {
    let mut plan = NamePlan::new(None, day(0), 0.5);
    plan.begin(day(0));
    plan.fail(failure(FailureKind::Dns), day(0), 0.5, 2);
    let plan = plan.without_order();
    assert!(!plan.is_outdated(day(0)) && !plan.is_outdated(day(1)));
    assert!(plan.is_outdated(day(1) + 3 * MINUTE));
    assert!(NamePlan::new(None, day(0), 0.5).is_outdated(day(0)));
}

#[test]
fn requested_certificate_is_ordered_at_once_and_only_once() {
    let mut plan = NamePlan::new(Some(days(0, 90)), day(1), 0.5);
    assert!(!plan.is_due(day(1)));
    plan.request(day(1)).unwrap();
    assert!(plan.is_due(day(1)));
    // The CA's suggestion does not cancel the request.
    plan.suggest((day(50), day(60)), HOUR, day(1), 0.5);
    assert!(plan.is_due(day(1)));
    plan.begin(day(1));
    plan.succeed(days(1, 91), day(1), 0.5);
    assert!(!plan.is_due(day(2)));
    // The host got a certificate a moment ago.
    assert_eq!(plan.request(day(1)), Err(day(1) + MINUTE));
    plan.request(day(2)).unwrap();
    assert!(plan.is_due(day(2)));
}

#[test]
fn request_ends_pause_after_failure_but_not_pause_of_ca() {
    let mut plan = NamePlan::new(None, day(0), 0.5);
    plan.fail(failure(FailureKind::Dns), day(0), 0.5, 2);
    assert!(!plan.is_due(day(0)));
    plan.request(day(0)).unwrap();
    assert!(plan.is_due(day(0)));
    let limited = OrderFailure {
        retry_after: Some(30 * HOUR),
        ..failure(FailureKind::RateLimited)
    };
    plan.fail(limited, day(0), 0.5, 2);
    assert_eq!(plan.request(day(0)), Err(day(0) + 30 * HOUR));
    assert!(!plan.is_due(day(1)));
}

#[test]
fn lost_file_is_replaced_at_once_and_later_each_time() {
    let mut plan = NamePlan::new(Some(days(0, 90)), day(1), 0.5);
    let mut now = day(1);
    for pause in [
        Duration::ZERO,
        HOUR,
        2 * HOUR,
        4 * HOUR,
        8 * HOUR,
        16 * HOUR,
        16 * HOUR,
    ] {
        plan.lose_file(now);
        assert!(pause.is_zero() || !plan.is_due(now + pause - SECOND));
        now += pause;
        assert!(plan.is_due(now), "{pause:?}");
        plan.begin(now);
        plan.succeed(days(1, 91), now, 0.5);
        now += HOUR;
    }
    // An operator has put the file back.
    plan.lose_file(now);
    plan.use_file(days(1, 91), now, 0.5);
    assert!(!plan.is_due(now + DAY));
}
