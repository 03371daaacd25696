//! The API of a VMM.

use std::{
    io::{BufRead, BufReader, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::mpsc::Sender,
    thread,
};

use serde_json::{Value, json};

use super::{Kind, Machine, has_fault, in_root};

/// The API of a VMM, which knows the state of the VM, and pauses, resumes, saves and restores
/// it as Firecracker or as Cloud Hypervisor does. What the VM should not be told twice is
/// refused.
pub(super) struct Api {
    pub(super) kind: Kind,
    pub(super) machine: Option<Machine>,
    /// Where a restored machine is wanted, with its vsock.
    pub(super) restored: Option<Sender<(UnixListener, Machine)>>,
}

/// The API's reply to a query of the VM's state.
pub(crate) const STATE: &str = r#"{"id":"a-fake","state":"Running"}"#;

/// A refusal, with its reason.
type Reply = Result<Option<String>, &'static str>;

/// Serves the API.
pub(super) fn serve(listener: UnixListener, mut api: Api) {
    thread::spawn(move || {
        for program in listener.incoming() {
            api.answer(&program.unwrap());
        }
    });
}

impl Api {
    fn answer(&mut self, mut program: &UnixStream) {
        let Some((line, body)) = read_request(&mut BufReader::new(program)) else {
            return;
        };
        let request = line.strip_suffix(" HTTP/1.1").unwrap();
        let body: Value = match body.as_str() {
            "" => Value::Null,
            body => serde_json::from_str(body).unwrap(),
        };
        let reply = match self.kind {
            Kind::Firecracker => self.firecracker(request, &body),
            Kind::CloudHypervisor => self.cloud_hypervisor(request, &body),
        };
        let reply = match reply {
            Ok(None) => "204 No Content\r\n\r\n".to_owned(),
            Ok(Some(body)) => format!("200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
            Err(reason) => {
                let length = reason.len();
                format!("400 Bad Request\r\nContent-Length: {length}\r\n\r\n{reason}")
            }
        };
        write!(program, "HTTP/1.1 {reply}").unwrap();
        if has_fault("load") && reply.starts_with("400") {
            // As Firecracker does.
            std::process::exit(1);
        }
    }

    fn firecracker(&mut self, request: &str, body: &Value) -> Reply {
        let version = std::env::var(super::VERSION).unwrap();
        match request {
            "GET /" => Ok(Some(STATE.to_owned())),
            "GET /version" => {
                let version = version.strip_prefix("Firecracker v").unwrap();
                Ok(Some(json!({ "firecracker_version": version }).to_string()))
            }
            "PATCH /vm" => match body["state"].as_str() {
                Some("Paused") => self.set_paused(true),
                Some("Resumed") => self.set_paused(false),
                other => panic!("{other:?}"),
            },
            "PUT /snapshot/create" => {
                let [snapshot, memory] =
                    ["snapshot_path", "mem_file_path"].map(|key| text(body, key));
                let expected = json!({
                    "snapshot_type": "Full",
                    "snapshot_path": snapshot,
                    "mem_file_path": memory,
                });
                assert_eq!(*body, expected);
                let machine = self.machine_to_save()?;
                machine.save_firecracker(&in_root(snapshot), &in_root(memory));
                Ok(None)
            }
            "PUT /snapshot/load" => {
                let snapshot = text(body, "snapshot_path");
                let memory = text(&body["mem_backend"], "backend_path");
                let expected = json!({
                    "snapshot_path": snapshot,
                    "mem_backend": { "backend_type": "File", "backend_path": memory },
                    "resume_vm": true,
                });
                assert_eq!(*body, expected);
                self.restore(|| Machine::load_firecracker(&in_root(snapshot), &in_root(memory)))?;
                self.set_paused(false)
            }
            other => panic!("{other}"),
        }
    }

    fn cloud_hypervisor(&mut self, request: &str, body: &Value) -> Reply {
        let folder = |key: &str| {
            assert_eq!(body.as_object().unwrap().len(), 1);
            text(body, key).strip_prefix("file://").unwrap()
        };
        match request {
            "GET /api/v1/vmm.ping" => {
                let version = std::env::var(super::VERSION).unwrap();
                let version = version.split(' ').next_back().unwrap();
                Ok(Some(json!({ "build_version": version }).to_string()))
            }
            "PUT /api/v1/vm.pause" => self.set_paused(true),
            "PUT /api/v1/vm.resume" => self.set_paused(false),
            "PUT /api/v1/vm.snapshot" => {
                let machine = self.machine_to_save()?;
                machine.save_cloud_hypervisor(Path::new(folder("destination_url")));
                Ok(None)
            }
            "PUT /api/v1/vm.restore" => {
                let folder = Path::new(folder("source_url"));
                self.restore(|| Machine::load_cloud_hypervisor(folder))?;
                Ok(None)
            }
            other => panic!("{other}"),
        }
    }

    fn set_paused(&self, is_paused: bool) -> Reply {
        let machine = self.machine.as_ref().unwrap();
        match machine.guest.set_paused(is_paused) {
            true => Ok(None),
            false => Err("twice"),
        }
    }

    fn machine_to_save(&self) -> Result<&Machine, &'static str> {
        let machine = self.machine.as_ref().unwrap();
        match machine.guest.is_paused() {
            _ if has_fault("create") => Err("no space left"),
            true => Ok(machine),
            false => Err("the VM is not paused"),
        }
    }

    fn restore(
        &mut self,
        load: impl FnOnce() -> (UnixListener, Machine),
    ) -> Result<(), &'static str> {
        if has_fault("load") {
            return Err("the state is of another kind");
        }
        // Only before there is a VM.
        let restored = self.restored.take().unwrap();
        let (vsock, machine) = load();
        self.machine = Some(machine.clone());
        restored.send((vsock, machine)).unwrap();
        Ok(())
    }
}

fn text<'a>(body: &'a Value, key: &str) -> &'a str {
    body[key].as_str().unwrap()
}

/// Reads the first line and the body of a request. Returns `None` if there is none.
fn read_request(reader: &mut impl BufRead) -> Option<(String, String)> {
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap() == 0 {
        return None;
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Some((
        first.trim_end().to_owned(),
        String::from_utf8(body).unwrap(),
    ))
}
