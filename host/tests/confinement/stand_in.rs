//! A backend whose VMM is the attacker.

use std::{
    io::Read as _,
    os::unix::net::UnixStream,
    sync::{Arc, Mutex},
};

use vmcell::{
    Confinement, Error, Vm,
    backend::{Backend, BackendHealth, Backends, Launched, Machine, VmmProgram},
    confinement::LayerStatus,
};

use crate::{attacker, targets::Targets};

/// What the attacker has printed, and how it was confined.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    printed: String,
    pub(crate) layers: Vec<LayerStatus>,
}

#[derive(Debug)]
struct StandIn {
    targets: String,
    outcome: Arc<Mutex<Outcome>>,
}

impl Backend for StandIn {
    fn name(&self) -> &str {
        "stand-in"
    }

    fn health(&self) -> BackendHealth {
        BackendHealth::available("this test")
    }

    fn launch(&self, machine: Machine) -> Result<Launched, Error> {
        let (mut output, vmm_output) = UnixStream::pair().unwrap();
        let program = std::env::current_exe().unwrap();
        let vmm = VmmProgram::new(program, &machine)
            .args([
                "attacker::attack",
                "--exact",
                "--nocapture",
                "--test-threads=1",
            ])
            .arg(format!("{}{}", attacker::TARGETS, self.targets))
            .stderr(vmm_output.try_clone().unwrap())
            .stdout(vmm_output)
            .spawn()?;
        let mut printed = String::new();
        output.read_to_string(&mut printed).unwrap();
        *self.outcome.lock().unwrap() = Outcome {
            printed,
            layers: vmm.confinement().to_vec(),
        };
        Err(Error::Invalid("it is not a VMM".to_owned()))
    }
}

/// Runs the attacker as a VMM.
pub(crate) async fn attack(confinement: Confinement) -> Outcome {
    let targets = Targets::new();
    let outcome = Arc::default();
    let backend = StandIn {
        targets: targets.describe().to_string(),
        outcome: Arc::clone(&outcome),
    };
    let started = Vm::builder()
        .image("/dev/null")
        .memory_mib(64)
        .confinement(confinement)
        .backends(Backends::new().with(backend))
        .backend("stand-in")
        .start();
    let error = started.await.unwrap_err();
    let outcome = outcome.lock().unwrap().clone();
    assert!(!outcome.printed.is_empty(), "{error}");
    outcome
}

impl Outcome {
    /// Whether an attack was refused. Panics if it was not tried.
    pub(crate) fn is_refused(&self, name: &str) -> bool {
        let mut lines = self.printed.lines();
        assert!(
            lines.any(|line| line == format!("attack: {name}")),
            "{name}: {self:?}"
        );
        let after =
            lines.find(|line| line.starts_with("refused: ") || line.starts_with("succeeded: "));
        // Whoever has executed another program prints nothing more.
        after.is_some_and(|line| line.starts_with(&format!("refused: {name}: ")))
    }

    /// The attacks that were not refused.
    pub(crate) fn successes(&self) -> Vec<&'static str> {
        let tried = attacker::names()
            .take_while(|name| self.printed.contains(&format!("attack: {name}\n")));
        tried.filter(|name| !self.is_refused(name)).collect()
    }
}
