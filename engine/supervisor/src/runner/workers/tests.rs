//! Tests of the job pool, with jobs that end, endless jobs and background jobs.

use super::*;
use crate::source::watch::Mailbox;

fn job(name: &str, work: impl FnOnce() -> usize + Send + 'static) -> Job<usize> {
    Job {
        id: TenantId::new(name).expect("an id"),
        kind: JobKind::Compile,
        is_background: false,
        weight: None,
        work: Box::new(|_| JobStep::Done(work())),
        watchdog: None,
        again: None,
    }
}

/// The jobs to wait for.
#[derive(Clone, Copy)]
enum Wait {
    /// All.
    All,
    /// Jobs that end within this time of their start, and are not in the background.
    Each(Duration),
}

fn next(workers: &Workers<usize>, wait: Wait) -> Option<(TenantId, usize)> {
    loop {
        if let Some(done) = workers.poll() {
            return Some(done);
        }
        let is_worth_it = match wait {
            Wait::All => workers.is_busy(),
            Wait::Each(time) => workers.has_work(Some(time)),
        };
        if !is_worth_it {
            return workers.poll();
        }
        if let Some(done) = workers.wait(Duration::from_millis(15)) {
            return Some(done);
        }
    }
}

fn all(workers: &Workers<usize>, wait: Wait) -> Vec<usize> {
    let mut done: Vec<usize> =
        std::iter::from_fn(|| next(workers, wait).map(|done| done.1)).collect();
    done.sort_unstable();
    done
}

#[test]
fn what_never_ends_holds_up_nobody_and_its_correction_neither() {
    let workers = Workers::new();
    let (end, over) = channel::<()>();
    let over = Arc::new(Mutex::new(over));
    let endless = || {
        let over = Arc::clone(&over);
        move || {
            let _ = over.lock().expect("a lock").recv();
            0
        }
    };
    let count = processors() + 2;
    let names = (0..count).map(|number| job(&format!("slow-{number}"), endless()));
    let quick = (1..100).map(|number| job(&format!("quick-{number}"), move || number));
    workers.hand_over(names.chain(quick).collect());
    let quick: Vec<usize> = (1..100).collect();
    assert_eq!(all(&workers, Wait::Each(EXPECTED_TIME)), quick);
    workers.hand_over(vec![job("slow-0", || 7)]);
    assert_eq!(all(&workers, Wait::Each(EXPECTED_TIME)), [7]);
    drop(end);
    assert_eq!(all(&workers, Wait::All), vec![0; count]);
}

#[test]
fn what_takes_too_long_is_given_up_and_what_it_brings_later_is_dropped() {
    let workers = Workers::new();
    let (end, over) = channel::<()>();
    let over = Arc::new(Mutex::new(over));
    for _ in 0..3 {
        // More jobs than may be in flight for one tenant.
        let over = Arc::clone(&over);
        let endless = job("endless", move || {
            let _ = over.lock().expect("a lock").recv();
            1
        });
        let begun = Instant::now();
        workers.hand_over(vec![Job {
            watchdog: Some(Box::new(move || {
                (begun.elapsed() > EXPECTED_TIME).then_some(2)
            })),
            ..endless
        }]);
        assert_eq!(all(&workers, Wait::All), [2]);
    }
    workers.hand_over(vec![job("endless", || 7)]);
    assert_eq!(all(&workers, Wait::All), [7]);
    drop(end);
    while !workers.shared.lock().running.is_empty() {
        thread::yield_now();
    }
    assert!(all(&workers, Wait::All).is_empty());
}

#[test]
fn nobody_waits_for_the_background_and_who_asks_is_served_before_it() {
    let workers = Workers::new();
    let (open, gate) = channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let count = 3 * processors() + 3;
    let last = count - 1;
    let background = |number: usize| {
        let gate = Arc::clone(&gate);
        let job = job(&format!("t{number}"), move || {
            if number != last {
                let _ = gate.lock().expect("a lock").recv();
            }
            number
        });
        Job {
            is_background: true,
            ..job
        }
    };
    workers.hand_over((0..count).map(background).collect());
    assert!(
        all(&workers, Wait::Each(EXPECTED_TIME)).is_empty(),
        "nobody waits"
    );
    assert!(workers.has_background());
    let hurry = workers.hurry();
    hurry(&format!("t{last}"));
    hurry("nobody");
    // All others that began are still held.
    let first = std::iter::repeat_with(|| all(&workers, Wait::Each(EXPECTED_TIME)));
    let mut first = first.skip_while(|done| {
        thread::sleep(Duration::from_millis(1));
        done.is_empty()
    });
    assert_eq!(first.next(), Some(vec![last]));
    drop(open);
    let rest: Vec<usize> = (0..last).collect();
    assert_eq!(all(&workers, Wait::All), rest);
    assert!(!workers.has_background());
}

#[test]
fn of_what_waits_for_one_tenant_only_the_newest_is_begun() {
    let workers = Workers::new();
    let (begun, begins) = channel();
    let (open, gate) = channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let busy = (0..processors()).map(|number| {
        let (begun, gate) = (begun.clone(), Arc::clone(&gate));
        job(&format!("busy-{number}"), move || {
            begun.send(()).expect("a test");
            let _ = gate.lock().expect("a lock").recv();
            0
        })
    });
    workers.hand_over(busy.collect());
    (0..processors()).for_each(|_| begins.recv().expect("a busy thread"));
    let one = (1..10).map(|number| job("one", move || number));
    workers.hand_over(one.collect());
    drop(open);
    let done = all(&workers, Wait::All);
    assert_eq!(done.last(), Some(&9));
    assert_eq!(done.len(), processors() + 1, "{done:?}");
}

#[test]
fn of_the_background_no_more_is_begun_than_is_allowed() {
    let workers = Workers::new();
    workers.allow(3);
    let background = (0..10).map(|number| Job {
        is_background: true,
        ..job(&format!("t{number}"), move || number)
    });
    workers.hand_over(background.collect());
    let mut done = Vec::new();
    let begun = Instant::now();
    while done.len() < 3 && begun.elapsed() < PATIENCE {
        done.extend(all(&workers, Wait::Each(EXPECTED_TIME)));
    }
    workers.hand_over(vec![job("front", || 10)]);
    done.extend(all(&workers, Wait::Each(EXPECTED_TIME)));
    // Jobs start in order, and of two jobs in flight either may end first.
    done.sort_unstable();
    assert_eq!(done, [0, 1, 2, 10]);
    assert!(workers.has_background());
    workers.allow(usize::MAX);
    let rest: Vec<usize> = (3..10).collect();
    assert_eq!(all(&workers, Wait::All), rest);
}

/// The longest that any of this may take.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn who_asks_while_a_job_is_under_way_has_what_follows_done_at_once() {
    let workers = Workers::new();
    let hurry = workers.hurry();
    let id = TenantId::new("later").expect("an id");
    hurry("later");
    assert!(!workers.sleep(job("later", || 1)), "somebody waits");
    assert_eq!(all(&workers, Wait::All), [1]);
    hurry("later");
    workers.forget(&id);
    assert!(workers.sleep(job("later", || 2)), "who waited has it");
    assert!(all(&workers, Wait::All).is_empty());
    hurry("later");
    assert_eq!(all(&workers, Wait::All), [2]);
}

#[test]
fn a_job_is_told_whether_somebody_waits_for_it() {
    let workers = Workers::new();
    let told = |name: &str| Job {
        work: Box::new(|is_wanted| JobStep::Done(usize::from(is_wanted))),
        ..job(name, || 0)
    };
    workers.allow(0);
    let background = |name| Job {
        is_background: true,
        ..told(name)
    };
    workers.hand_over(vec![background("wanted"), background("other")]);
    assert!(workers.is_held());
    workers.hurry()("wanted");
    let begun = Instant::now();
    let first = std::iter::repeat_with(|| next(&workers, Wait::Each(EXPECTED_TIME)))
        .take_while(|_| begun.elapsed() < EXPECTED_TIME * 100)
        .find_map(|done| done);
    assert_eq!(first.map(|(_, done)| done), Some(1));
    workers.allow(1);
    assert_eq!(all(&workers, Wait::All), [0]);
    assert!(!workers.is_held());
}

#[test]
fn what_the_background_is_slow_with_is_done_once_more_for_who_waits() {
    let workers = Workers::new();
    let ((end, over), (begin, begun)) = (channel::<()>(), channel::<()>());
    let slow = Job {
        is_background: true,
        again: Some(Box::new(|| job("one", || 2))),
        ..job("one", move || {
            begin.send(()).expect("the test");
            let _ = over.recv();
            1
        })
    };
    workers.hand_over(vec![slow]);
    begun.recv_timeout(PATIENCE).expect("a thread");
    let hurry = workers.hurry();
    let begun = Instant::now();
    let first = std::iter::repeat_with(|| {
        // Who waits asks again and again.
        hurry("one");
        next(&workers, Wait::Each(EXPECTED_TIME))
    })
    .take_while(|_| begun.elapsed() < PATIENCE)
    .find_map(|done| done);
    assert_eq!(first.map(|(_, done)| done), Some(2));
    hurry("one");
    drop(end);
    assert_eq!(all(&workers, Wait::All), [1], "once is enough");
}

#[test]
fn an_owner_that_listens_late_hears_of_what_was_begun_before() {
    let workers = Workers::new();
    let ((end, over), (begin, begun)) = (channel::<()>(), channel::<()>());
    workers.hand_over(vec![Job {
        is_background: true,
        ..job("one", move || {
            begin.send(()).expect("the test");
            let _ = over.recv();
            1
        })
    }]);
    begun.recv_timeout(PATIENCE).expect("a thread");
    let owner = Mailbox::default();
    workers.notify(owner.sender());
    assert!(owner.is_woken(PATIENCE), "of what was done before");
    drop(end);
    assert!(owner.is_woken(PATIENCE), "of what is done now");
    assert_eq!(all(&workers, Wait::All), [1]);
}

#[test]
fn who_asks_again_and_again_does_not_lose_its_place_at_the_front() {
    let mut queue = JobQueue::new(channel().0);
    queue.insert(BACKGROUND, job("last", || 3));
    queue.insert(REQUESTED, job("first", || 1));
    queue.insert(REQUESTED, job("second", || 2));
    for id in ["first", "last", "last", "first"] {
        let id = TenantId::new(id).expect("an id");
        for job in queue.unhurried(&id) {
            queue.insert(REQUESTED, job);
        }
    }
    let taken = || queue.take(Lane::Front).map(|(_, job)| job.id.to_string());
    let order: Vec<String> = std::iter::from_fn(taken).collect();
    assert_eq!(order, ["first", "second", "last"]);
}

#[test]
fn who_waits_for_what_is_there_is_told_of_once() {
    let workers = Workers::<usize>::new();
    let owner = Mailbox::default();
    workers.notify(owner.sender());
    assert!(owner.is_woken(PATIENCE), "a greeting");
    for id in ["there", "not-there"] {
        workers.hurry()(id);
        assert!(owner.is_woken(PATIENCE), "the owner looks");
    }
    assert!(workers.wait_in_vain(|id| id == "there"));
    assert!(!workers.wait_in_vain(|id| id == "there"));
}

/// Returns a job that needs `bytes` of memory, which become known only when the job runs.
fn weighed(name: &str, bytes: u64, work: impl FnOnce() -> usize + Send + 'static) -> Job<usize> {
    let weight = JobWeight {
        bytes,
        refuse: Box::new(|limit| usize::try_from(limit).expect("a small limit")),
    };
    let work = move |_| JobStep::Done(work());
    Job {
        work: Box::new(move |_| JobStep::Weighed(weight, Box::new(work))),
        ..job(name, || 0)
    }
}

const HEAVY: u64 = 64 << 20;

#[test]
fn heavy_work_in_progress_stays_below_the_memory_limit_and_light_work_passes_it_by() {
    let workers = Workers::new();
    workers.limit_memory(2 * HEAVY);
    let (now, most) = (Arc::new(Mutex::new(0_usize)), Arc::new(Mutex::new(0_usize)));
    let (open, gate) = channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let heavy = (0..8).map(|number| {
        let (now, most, gate) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&gate));
        weighed(&format!("heavy-{number}"), HEAVY, move || {
            let running = {
                let mut now = now.lock().expect("a lock");
                *now += 1;
                *now
            };
            let mut most = most.lock().expect("a lock");
            *most = running.max(*most);
            drop(most);
            let _ = gate.lock().expect("a lock").recv();
            *now.lock().expect("a lock") -= 1;
            1
        })
    });
    workers.hand_over(heavy.collect());
    workers.hand_over(vec![job("light", || 7)]);
    let light = std::iter::from_fn(|| next(&workers, Wait::Each(Duration::MAX)));
    assert_eq!(
        light.map(|(_, done)| done).next(),
        Some(7),
        "no heavy job is done"
    );
    for _ in 0..8 {
        open.send(()).expect("a job");
    }
    assert_eq!(all(&workers, Wait::All), vec![1; 8]);
    let most = *most.lock().expect("a lock");
    assert!((1..=2).contains(&most), "{most} at once");
}

#[test]
fn work_that_can_never_fit_is_refused_and_what_waits_goes_on() {
    let workers = Workers::new();
    workers.limit_memory(HEAVY);
    let too_heavy = weighed("too-heavy", HEAVY + 1, || panic!("it is never begun"));
    let fits = weighed("fits", HEAVY, || 1);
    workers.hand_over(vec![too_heavy, fits]);
    let refused = usize::try_from(HEAVY).expect("a small limit");
    assert_eq!(all(&workers, Wait::All), [1, refused]);
}
