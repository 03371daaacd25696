use std::sync::{Condvar, Mutex, MutexGuard};

/// The guest of a VM, which is nothing but its agent.
pub(super) struct Guest {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    boot_id: [u8; 16],
    /// Where the agent listens.
    port: u32,
    is_frozen: bool,
    is_paused: bool,
    /// How often the guest has forgotten its connections.
    resets: u32,
}

/// How a guest begins in the memory of a VM.
const MAGIC: &[u8; 16] = b"the fake's guest";

impl Guest {
    pub(super) fn booted(boot_id: [u8; 16], port: u32) -> Self {
        Self::new(State {
            boot_id,
            port,
            is_frozen: false,
            is_paused: false,
            resets: 0,
        })
    }

    fn new(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Returns what a VMM saves of it. It must stand still.
    pub(super) fn to_memory(&self) -> Vec<u8> {
        let state = self.lock();
        assert!(state.is_paused && state.is_frozen);
        let port = state.port.to_le_bytes();
        [&MAGIC[..], &state.boot_id, &port].concat()
    }

    /// Returns a guest that is paused, from what was saved.
    pub(super) fn from_memory(memory: &[u8]) -> Self {
        assert_eq!(&memory[..16], MAGIC);
        Self::new(State {
            boot_id: memory[16..32].try_into().unwrap(),
            port: u32::from_le_bytes(memory[32..36].try_into().unwrap()),
            is_frozen: true,
            is_paused: true,
            resets: 0,
        })
    }

    /// Pauses or resumes it. Returns `false` if it was told so before.
    pub(super) fn set_paused(&self, is_paused: bool) -> bool {
        let mut state = self.lock();
        self.changed.notify_all();
        std::mem::replace(&mut state.is_paused, is_paused) != is_paused
    }

    pub(super) fn is_paused(&self) -> bool {
        self.lock().is_paused
    }

    /// Has it forget its connections, as Firecracker does when it is saved.
    pub(super) fn reset_connections(&self) {
        self.lock().resets += 1;
    }

    pub(super) fn port(&self) -> u32 {
        self.lock().port
    }

    /// Waits until it runs. Returns how often it has forgotten its connections.
    pub(super) fn wait_until_running(&self) -> u32 {
        let state = self.lock();
        let state = self.changed.wait_while(state, |state| state.is_paused);
        state.unwrap().resets
    }

    pub(super) fn boot_id(&self) -> [u8; 16] {
        self.lock().boot_id
    }

    pub(super) fn set_frozen(&self, is_frozen: bool) {
        self.lock().is_frozen = is_frozen;
        println!("frozen: {is_frozen}");
    }

    /// Takes a new identity. Its processes must stand still.
    pub(super) fn renew(&self, boot_id: [u8; 16], hostname: &str) {
        let mut state = self.lock();
        assert!(state.is_frozen);
        assert_ne!(state.boot_id, boot_id);
        state.boot_id = boot_id;
        state.is_frozen = false;
        println!("renewed: {hostname}");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}
