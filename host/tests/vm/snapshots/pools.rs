//! Pools of VMs.

use std::{collections::HashSet, time::Duration};

use vmcell::{Pool, Template, VmState};

use super::builder;
use crate::{clock::assert_clock_matches, processes::VmmProcess};

#[tokio::test]
async fn a_pool_hands_out_each_vm_once_and_replaces_those_that_die() {
    // No other test has VMs of this size.
    let template = Template::builder(builder().memory_mib(136));
    let template = template.get().await.unwrap();
    let pool = Pool::builder(template).size(2).start();
    pool.filled().await;
    assert_eq!(pool.ready(), 2);
    let mut ids = HashSet::new();
    for number in 0..4 {
        if number == 2 {
            pool.filled().await;
            for _ in 0..2 {
                let vmm = VmmProcess::find(|word| word == "136M").unwrap();
                vmm.kill();
                assert!(vmm.ends_within(Duration::from_secs(10)));
            }
        }
        let vm = pool.take().await.unwrap();
        assert_eq!(vm.state(), VmState::Running);
        assert!(vm.exec(["true"]).await.unwrap().success());
        assert_clock_matches(&vm).await;
        assert!(ids.insert(vm.id().to_owned()));
    }
    pool.filled().await;
    assert_eq!(pool.ready(), 2);
}

#[tokio::test]
async fn a_pool_that_nobody_uses_shrinks_until_it_is_used_again() {
    let template = Template::builder(builder()).get().await.unwrap();
    let pool = Pool::builder(template)
        .size(2)
        .shrink_after(Duration::from_millis(200));
    let pool = pool.start();
    pool.filled().await;
    while pool.ready() > 0 {
        tokio::task::yield_now().await;
    }
    // None is ready, so one is started.
    let vm = pool.take().await.unwrap();
    assert!(vm.exec(["true"]).await.unwrap().success());
    while pool.ready() == 0 {
        tokio::task::yield_now().await;
    }
}
