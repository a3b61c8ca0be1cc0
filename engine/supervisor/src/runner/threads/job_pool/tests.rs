//! Tests of the job pool, with jobs that end, endless jobs and background jobs.

use super::queue::{MAX_SLOW_PER_PROCESSOR, NORMAL_PRIORITY_TIME};
use super::*;
use crate::runner::reload_queue::ReloadQueue;

fn job(name: &str, work: impl FnOnce() -> usize + Send + 'static) -> Job<usize> {
    Job {
        id: TenantId::new(name).expect("an id"),
        kind: JobKind::Compile,
        is_background: false,
        weight: None,
        work: Box::new(|_| JobStep::Done(work())),
        watchdog: None,
        copy: None,
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

fn next(job_pool: &JobPool<usize>, wait: Wait) -> Option<(TenantId, usize)> {
    loop {
        if let Some(done) = job_pool.poll() {
            return Some(done);
        }
        let is_worth_it = match wait {
            Wait::All => job_pool.is_busy(),
            Wait::Each(time) => job_pool.has_work(Some(time)),
        };
        if !is_worth_it {
            return job_pool.poll();
        }
        if let Some(done) = job_pool.wait(Duration::from_millis(15)) {
            return Some(done);
        }
    }
}

fn all(job_pool: &JobPool<usize>, wait: Wait) -> Vec<usize> {
    let mut done: Vec<usize> =
        std::iter::from_fn(|| next(job_pool, wait).map(|done| done.1)).collect();
    done.sort_unstable();
    done
}

#[test]
fn endless_jobs_delay_neither_other_jobs_nor_their_own_correction() {
    let job_pool = JobPool::new();
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
    job_pool.hand_over(names.chain(quick).collect());
    let quick: Vec<usize> = (1..100).collect();
    assert_eq!(all(&job_pool, Wait::Each(EXPECTED_TIME)), quick);
    job_pool.hand_over(vec![job("slow-0", || 7)]);
    assert_eq!(all(&job_pool, Wait::Each(EXPECTED_TIME)), [7]);
    drop(end);
    assert_eq!(all(&job_pool, Wait::All), vec![0; count]);
}

#[test]
fn urgent_job_has_a_thread_while_fifty_jobs_never_end() {
    let job_pool = JobPool::new();
    let (end, over) = channel::<()>();
    let over = Arc::new(Mutex::new(over));
    let endless = (0..50).map(|number| {
        let over = Arc::clone(&over);
        job(&format!("slow-{number}"), move || {
            let _ = over.lock().expect("a lock").recv();
            0
        })
    });
    job_pool.hand_over(endless.collect());
    while job_pool.shared.lock().running.len() < processors() {
        thread::yield_now();
    }
    for urgent in 1..=5 {
        job_pool.hand_over(vec![job("urgent", move || urgent)]);
        assert!(job_pool.shared.lock().threads[Lane::Front as usize] > processors());
        while job_pool.poll().is_none_or(|(_, done)| done != urgent) {
            thread::yield_now();
        }
    }
    drop(end);
    assert_eq!(all(&job_pool, Wait::All), vec![0; 50]);
}

#[test]
fn threads_of_many_slow_jobs_lose_their_priority_and_end_with_the_jobs() {
    let pool = JobPool::new();
    let (end, over) = channel::<()>();
    let over = Arc::new(Mutex::new(over));
    let slow = |number: usize| {
        let over = Arc::clone(&over);
        job(&format!("slow-{number}"), move || {
            let _ = over.lock().expect("a lock").recv();
            1
        })
    };
    let few = processors() * MAX_SLOW_PER_PROCESSOR;
    pool.hand_over((0..few).map(slow).collect());
    let lowered = || {
        assert!(pool.poll().is_none());
        thread::sleep(Duration::from_millis(5));
        let queue = pool.shared.lock();
        let lowered = queue.running.values().filter(|one| one.has_low_priority);
        (queue.running.len(), lowered.count())
    };
    let begin = Instant::now();
    while lowered().0 < few || begin.elapsed() < NORMAL_PRIORITY_TIME * 2 {}
    assert_eq!(lowered().1, 0, "a few slow jobs keep their priority");
    pool.hand_over(vec![slow(few)]);
    while lowered().1 <= few {}
    drop(end);
    assert_eq!(all(&pool, Wait::All), vec![1; few + 1]);
    while pool.shared.lock().threads[Lane::Front as usize] > 0 {
        thread::yield_now();
    }
    pool.hand_over(vec![job("next", || 2)]);
    assert_eq!(all(&pool, Wait::All), [2]);
}

#[test]
fn idle_threads_end_unless_a_queued_job_needs_them_and_start_again() {
    let pool = JobPool::new();
    pool.shared.lock().max_idle_time = Duration::from_millis(50);
    let threads = || pool.shared.lock().threads;
    for number in 1..=2 {
        pool.hand_over(vec![job("corner", move || number)]);
        assert_eq!(all(&pool, Wait::All), [number]);
        while threads() != [0; 2] {
            thread::yield_now();
        }
    }
    pool.allow_background(0);
    let mut later = job("later", || 3);
    later.is_background = true;
    pool.hand_over(vec![later]);
    thread::sleep(Duration::from_millis(200));
    assert_eq!(threads()[Lane::Back as usize], 1);
    pool.allow_background(1);
    assert_eq!(all(&pool, Wait::All), [3]);
}

#[test]
fn watchdog_abandons_a_job_and_its_late_result_is_dropped() {
    let job_pool = JobPool::new();
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
        job_pool.hand_over(vec![Job {
            watchdog: Some(Box::new(move || {
                (begun.elapsed() > EXPECTED_TIME).then_some(2)
            })),
            ..endless
        }]);
        assert_eq!(all(&job_pool, Wait::All), [2]);
    }
    job_pool.hand_over(vec![job("endless", || 7)]);
    assert_eq!(all(&job_pool, Wait::All), [7]);
    drop(end);
    while !job_pool.shared.lock().running.is_empty() {
        thread::yield_now();
    }
    assert!(all(&job_pool, Wait::All).is_empty());
}

#[test]
fn background_jobs_are_not_waited_for_and_a_request_moves_its_job_to_the_front() {
    let job_pool = JobPool::new();
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
    job_pool.hand_over((0..count).map(background).collect());
    assert!(
        all(&job_pool, Wait::Each(EXPECTED_TIME)).is_empty(),
        "background jobs are not waited for"
    );
    assert!(job_pool.has_background());
    let prioritise = job_pool.prioritise();
    prioritise(&format!("t{last}"));
    prioritise("unknown");
    // All other jobs that began wait at the gate.
    let first = std::iter::repeat_with(|| all(&job_pool, Wait::Each(EXPECTED_TIME)));
    let mut first = first.skip_while(|done| {
        thread::sleep(Duration::from_millis(1));
        done.is_empty()
    });
    assert_eq!(first.next(), Some(vec![last]));
    drop(open);
    let rest: Vec<usize> = (0..last).collect();
    assert_eq!(all(&job_pool, Wait::All), rest);
    assert!(!job_pool.has_background());
}

#[test]
fn newest_queued_job_of_a_tenant_replaces_older_queued_jobs() {
    let job_pool = JobPool::new();
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
    job_pool.hand_over(busy.collect());
    (0..processors()).for_each(|_| begins.recv().expect("a busy thread"));
    let one = (1..10).map(|number| job("one", move || number));
    job_pool.hand_over(one.collect());
    drop(open);
    let done = all(&job_pool, Wait::All);
    assert_eq!(done.last(), Some(&9));
    assert_eq!(done.len(), processors() + 1, "{done:?}");
}

#[test]
fn background_starts_no_more_jobs_than_allowed() {
    let job_pool = JobPool::new();
    job_pool.allow_background(3);
    let background = (0..10).map(|number| Job {
        is_background: true,
        ..job(&format!("t{number}"), move || number)
    });
    job_pool.hand_over(background.collect());
    let mut done = Vec::new();
    let begun = Instant::now();
    while done.len() < 3 && begun.elapsed() < TEST_TIMEOUT {
        done.extend(all(&job_pool, Wait::Each(EXPECTED_TIME)));
    }
    job_pool.hand_over(vec![job("front", || 10)]);
    done.extend(all(&job_pool, Wait::Each(EXPECTED_TIME)));
    // Jobs start in order, and of two jobs in flight either may end first.
    done.sort_unstable();
    assert_eq!(done, [0, 1, 2, 10]);
    assert!(job_pool.has_background());
    job_pool.allow_background(usize::MAX);
    let rest: Vec<usize> = (3..10).collect();
    assert_eq!(all(&job_pool, Wait::All), rest);
}

/// The time limit for each step of a test.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn held_back_job_starts_at_once_if_its_tenant_was_requested() {
    let job_pool = JobPool::new();
    let prioritise = job_pool.prioritise();
    let id = TenantId::new("later").expect("an id");
    prioritise("later");
    assert!(!job_pool.hold(job("later", || 1)), "a request waits");
    assert_eq!(all(&job_pool, Wait::All), [1]);
    prioritise("later");
    job_pool.forget(&id);
    assert!(
        job_pool.hold(job("later", || 2)),
        "the request is forgotten"
    );
    assert!(all(&job_pool, Wait::All).is_empty());
    prioritise("later");
    assert_eq!(all(&job_pool, Wait::All), [2]);
}

#[test]
fn job_learns_whether_a_request_waits_for_it() {
    let job_pool = JobPool::new();
    let reporting = |name: &str| Job {
        work: Box::new(|is_wanted| JobStep::Done(usize::from(is_wanted))),
        ..job(name, || 0)
    };
    job_pool.allow_background(0);
    let background = |name| Job {
        is_background: true,
        ..reporting(name)
    };
    job_pool.hand_over(vec![background("wanted"), background("other")]);
    assert!(job_pool.is_background_held());
    job_pool.prioritise()("wanted");
    let begun = Instant::now();
    let first = std::iter::repeat_with(|| next(&job_pool, Wait::Each(EXPECTED_TIME)))
        .take_while(|_| begun.elapsed() < EXPECTED_TIME * 100)
        .find_map(|done| done);
    assert_eq!(first.map(|(_, done)| done), Some(1));
    job_pool.allow_background(1);
    assert_eq!(all(&job_pool, Wait::All), [0]);
    assert!(!job_pool.is_background_held());
}

#[test]
fn slow_background_job_is_copied_once_for_a_waiting_request() {
    let job_pool = JobPool::new();
    let ((end, over), (begin, begun)) = (channel::<()>(), channel::<()>());
    let slow = Job {
        is_background: true,
        copy: Some(Box::new(|| job("one", || 2))),
        ..job("one", move || {
            begin.send(()).expect("the test");
            let _ = over.recv();
            1
        })
    };
    job_pool.hand_over(vec![slow]);
    begun.recv_timeout(TEST_TIMEOUT).expect("a thread");
    let prioritise = job_pool.prioritise();
    let begun = Instant::now();
    let first = std::iter::repeat_with(|| {
        // A waiting request repeats the call.
        prioritise("one");
        next(&job_pool, Wait::Each(EXPECTED_TIME))
    })
    .take_while(|_| begun.elapsed() < TEST_TIMEOUT)
    .find_map(|done| done);
    assert_eq!(first.map(|(_, done)| done), Some(2));
    prioritise("one");
    drop(end);
    assert_eq!(all(&job_pool, Wait::All), [1], "the job is copied once");
}

#[test]
fn owner_that_registers_late_is_notified_of_jobs_that_began_before() {
    let job_pool = JobPool::new();
    let ((end, over), (begin, begun)) = (channel::<()>(), channel::<()>());
    job_pool.hand_over(vec![Job {
        is_background: true,
        ..job("one", move || {
            begin.send(()).expect("the test");
            let _ = over.recv();
            1
        })
    }]);
    begun.recv_timeout(TEST_TIMEOUT).expect("a thread");
    let owner = ReloadQueue::default();
    job_pool.notify(owner.sender());
    assert!(owner.is_woken(TEST_TIMEOUT), "at registration");
    drop(end);
    assert!(owner.is_woken(TEST_TIMEOUT), "when the job ends");
    assert_eq!(all(&job_pool, Wait::All), [1]);
}

#[test]
fn repeated_requests_do_not_change_the_position_at_the_front() {
    let mut queue = JobQueue::new(channel().0);
    queue.insert(BACKGROUND, job("last", || 3));
    queue.insert(REQUESTED, job("first", || 1));
    queue.insert(REQUESTED, job("second", || 2));
    for id in ["first", "last", "last", "first"] {
        let id = TenantId::new(id).expect("an id");
        for job in queue.remove_unprioritised(&id) {
            queue.insert(REQUESTED, job);
        }
    }
    let next = || queue.pop(Lane::Front).map(|(_, job)| job.id.to_string());
    let order: Vec<String> = std::iter::from_fn(next).collect();
    assert_eq!(order, ["first", "second", "last"]);
}

#[test]
fn request_for_built_pages_is_reported_once() {
    let job_pool = JobPool::<usize>::new();
    let owner = ReloadQueue::default();
    job_pool.notify(owner.sender());
    assert!(owner.is_woken(TEST_TIMEOUT), "at registration");
    for id in ["built", "not-built"] {
        job_pool.prioritise()(id);
        assert!(
            owner.is_woken(TEST_TIMEOUT),
            "the owner is notified of {id}"
        );
    }
    assert!(job_pool.forget_built(|id| id == "built"));
    assert!(!job_pool.forget_built(|id| id == "built"));
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
fn heavy_jobs_stay_within_the_memory_limit_and_light_jobs_overtake_them() {
    let job_pool = JobPool::new();
    job_pool.limit_memory(2 * HEAVY);
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
    job_pool.hand_over(heavy.collect());
    job_pool.hand_over(vec![job("light", || 7)]);
    let light = std::iter::from_fn(|| next(&job_pool, Wait::Each(Duration::MAX)));
    assert_eq!(
        light.map(|(_, done)| done).next(),
        Some(7),
        "the light job ends before all heavy jobs"
    );
    for _ in 0..8 {
        open.send(()).expect("a job");
    }
    assert_eq!(all(&job_pool, Wait::All), vec![1; 8]);
    let most = *most.lock().expect("a lock");
    assert!((1..=2).contains(&most), "{most} at once");
}

#[test]
fn job_beyond_the_memory_limit_is_refused_and_other_jobs_run() {
    let job_pool = JobPool::new();
    job_pool.limit_memory(HEAVY);
    let too_heavy = weighed("too-heavy", HEAVY + 1, || {
        panic!("a refused job never runs")
    });
    let fits = weighed("fits", HEAVY, || 1);
    job_pool.hand_over(vec![too_heavy, fits]);
    let refused = usize::try_from(HEAVY).expect("a small limit");
    assert_eq!(all(&job_pool, Wait::All), [1, refused]);
}
