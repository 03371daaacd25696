use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Retention, ToolBuilder, ToolFailure, ToolFailureKind, ToolPolicy, ToolRequest, ToolResult,
    audit::Subject,
    builder::FindEnvironment,
    call::{Attempt, Call, Ending, Masks, connections},
    evidence, output_file,
    plan::Plan,
    sandbox::{self, Sandbox},
    validation::{Refusal, validate},
};
use crate::{
    error::Error,
    on_thread::on_thread,
    process::{Cause, Output},
    receipt::{Receipt, ReceiptError, ReceiptId, ReceiptLog},
    secret::{Secret, SecretProvider},
    template::{KeyParts, Template},
    vm::VmBuilder,
    workspace::Workspaces,
};

/// Runs requests under a policy: see the [module](super). Handles are cheap to clone, and
/// calls run beside each other.
#[derive(Clone)]
pub struct Tool {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) policy: ToolPolicy,
    pub(super) policy_digest: String,
    pub(super) vm: VmBuilder,
    pub(super) log: ReceiptLog,
    pub(super) workspaces: Workspaces,
    pub(super) environments: Option<Arc<FindEnvironment>>,
    pub(super) secrets: BTreeMap<String, Secret>,
    pub(super) provider: Option<Arc<dyn SecretProvider>>,
    /// The templates that were used, by what they are made of.
    pub(super) templates: Mutex<HashMap<String, Option<Template>>>,
}

/// The caller of [`Tool::run`].
pub const DEFAULT_CALLER: &str = "default";

/// How many templates a tool keeps loaded.
const MAX_TEMPLATES: usize = 16;

impl Tool {
    /// Returns a builder of a tool with this policy.
    pub fn builder(policy: ToolPolicy) -> ToolBuilder {
        ToolBuilder::new(policy)
    }

    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns its policy.
    pub fn policy(&self) -> &ToolPolicy {
        &self.shared.policy
    }

    /// Returns the log of its receipts.
    pub fn receipts(&self) -> &ReceiptLog {
        &self.shared.log
    }

    /// Runs a request of the caller [`default`](DEFAULT_CALLER). All of it is checked before
    /// anything is started.
    ///
    /// Each call has a receipt, whether it ran or was refused, and each decision about it is
    /// an audit event. Sandboxes whose time is over are deleted meanwhile.
    ///
    /// # Errors
    /// One of the six [failures](ToolFailure). A command that exits with another code than 0
    /// is one of them, and has its result.
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM ends and nothing is left. A workspace that was to be
    /// kept is deleted by a task, or when its time is over. There is no receipt then.
    pub async fn run(&self, request: ToolRequest) -> Result<ToolResult, ToolFailure> {
        self.run_as(DEFAULT_CALLER, request).await
    }

    /// Same as [`run`](Self::run), for a caller of the policy.
    ///
    /// # Errors
    /// Same as [`run`](Self::run).
    ///
    /// # Cancel safety
    /// Same as [`run`](Self::run).
    pub async fn run_as(
        &self,
        caller: &str,
        request: ToolRequest,
    ) -> Result<ToolResult, ToolFailure> {
        let call = Call::new(caller).map_err(no_call)?;
        self.carry_out(call, request).await
    }

    /// Same as [`run_as`](Self::run_as), for a request as JSON. One that is not valid JSON, or
    /// too long, is refused as any other.
    ///
    /// # Errors
    /// Same as [`run`](Self::run).
    ///
    /// # Cancel safety
    /// Same as [`run`](Self::run).
    pub async fn run_json(&self, caller: &str, json: &[u8]) -> Result<ToolResult, ToolFailure> {
        let mut call = Call::new(caller).map_err(no_call)?;
        let limit = self.policy().limits.request_bytes();
        if json.len() as u64 > limit {
            let reason = format!("it is longer than {limit} bytes");
            call.audit.deny(Subject::Request, "", &reason);
            return Err(self.refuse(&call, Refusal::Invalid(reason)).await);
        }
        match ToolRequest::from_json(json) {
            Ok(request) => self.carry_out(call, request).await,
            Err(error) => {
                // Its text may have a part of the request, which may be a secret.
                let recorded = format!("line {}, column {}", error.line(), error.column());
                call.audit.deny(Subject::Request, "", &recorded);
                let reason =
                    Refusal::Invalid(crate::printable(error.to_string().as_bytes()).into());
                Err(self.refuse(&call, reason).await)
            }
        }
    }

    async fn carry_out(
        &self,
        mut call: Call,
        request: ToolRequest,
    ) -> Result<ToolResult, ToolFailure> {
        let mut plan = match validate(request, self.policy(), &mut call.audit) {
            Ok(plan) => plan,
            Err(refusal) => return Err(self.refuse(&call, refusal).await),
        };
        let resolved = self.resolve_secrets(&plan).await;
        let masks = Masks::new(resolved.as_deref().unwrap_or_default());
        if has_literal_secret(&plan, &masks) {
            let reason = "the request has the value of a secret: name it in `secrets`, and read \
                          it from its variable";
            call.audit.deny(Subject::Secret, "", reason);
            let refusal = Refusal::Invalid(reason.to_owned());
            return Err(self.refuse(&call, refusal).await);
        }
        if let Err(error) = self.on_log(ReceiptLog::check).await {
            return Err(ToolFailure::receipt(&call.audit_id(), &error));
        }
        let reaping = tokio::spawn(reap(self.shared.workspaces.clone()));
        let attempt = match resolved {
            Err(error) => Attempt::ended_with(Ending::Lost(error)),
            Ok(secrets) => {
                let limit = plan.deadline;
                let attempt = self.attempt(&call, &mut plan, &secrets, &masks);
                let attempt = tokio::time::timeout(limit, attempt).await;
                attempt.unwrap_or_else(|_| {
                    Attempt::ended_with(Ending::TimedOut {
                        output: no_output(),
                        after: limit,
                    })
                })
            }
        };
        let outcome = self.conclude(&call, &plan, attempt, &masks).await;
        // It fails only if it panicked, and has logged its errors.
        let _ = reaping.await;
        outcome
    }

    /// Records a request that was refused.
    async fn refuse(&self, call: &Call, refusal: Refusal) -> ToolFailure {
        let audit_id = call.audit_id();
        let failure = match refusal {
            Refusal::Invalid(reason) => ToolFailure::Invalid { audit_id, reason },
            Refusal::Denied(reason) => ToolFailure::PolicyDenied { audit_id, reason },
        };
        let receipt = call.denied(&self.shared.policy_digest, failure.kind());
        if let Err(error) = self.append(receipt).await {
            // The refusal matters more, and nothing was started.
            tracing::error!(%error, audit_id = call.audit_id(), "a refusal has no receipt");
        }
        failure
    }

    /// Runs a plan. Its sandbox has ended when this returns.
    async fn attempt(
        &self,
        call: &Call,
        plan: &mut Plan,
        secrets: &[(String, Secret)],
        masks: &Masks,
    ) -> Attempt {
        let (sandbox, evidence) = match self.start(call, plan).await {
            Ok(started) => started,
            Err(error) => return Attempt::ended_with(Ending::Lost(error)),
        };
        let result = match sandbox.write_files(plan).await {
            Ok(()) => {
                let command = sandbox::command(plan, secrets);
                sandbox.vm().exec_command(command).await
            }
            Err(error) => Err(error),
        };
        let mut attempt = Attempt {
            sandbox_id: Some(sandbox.id()),
            evidence: Some(evidence),
            ..Attempt::ended_with(Ending::of(result))
        };
        if attempt.output().is_some() {
            self.collect(&sandbox, plan, masks, &mut attempt).await;
        }
        attempt.cleanup = match &attempt.ending {
            Ending::Lost(_) => sandbox.discard().await.map(|()| None),
            _ => sandbox.finish(plan).await,
        };
        attempt
    }

    /// Collects the output files, and what was wanted of the network.
    async fn collect(&self, sandbox: &Sandbox, plan: &Plan, masks: &Masks, attempt: &mut Attempt) {
        let roots = &self.policy().limits.roots;
        let vm = sandbox.vm();
        match output_file::read(vm, &plan.outputs, roots, plan.max_output).await {
            Ok(outputs) => attempt.outputs = outputs,
            Err(error) => {
                attempt.ending = Ending::Lost(error);
                return;
            }
        }
        for file in &mut attempt.outputs {
            match &mut file.content {
                Ok(content) => drop(masks.bytes(content)),
                Err(reason) => *reason = masks.text(reason),
            }
        }
        if !plan.network.is_off()
            && let Ok(log) = vm.network_log().await
        {
            attempt.connections = connections(log, masks);
        }
    }

    async fn start(
        &self,
        call: &Call,
        plan: &Plan,
    ) -> Result<(Sandbox, tokio::task::JoinHandle<evidence::Evidence>), Error> {
        let image = self.image(plan).await?;
        let vm = self
            .shared
            .vm
            .clone()
            .image(&image)
            .memory_mib(plan.memory_mib)
            .vcpus(plan.image.vcpus.unwrap_or(1))
            .unlisted();
        if plan.retention != Retention::Destroy {
            let evidence = evidence::collect(vm, image.clone(), None, plan);
            let workspaces = &self.shared.workspaces;
            let starting = Sandbox::start_kept(workspaces, &image, plan, &call.audit.audit_id);
            return Ok((starting.await?, evidence));
        }
        let template = self.template(&vm, &image, plan).await?;
        let digest = template.as_ref().and_then(Template::image_sha256);
        let evidence = evidence::collect(vm.clone(), image, digest, plan);
        let sandbox = Sandbox::start(vm, template.as_ref(), plan).await?;
        Ok((sandbox, evidence))
    }

    /// Returns the path of the image of a plan.
    async fn image(&self, plan: &Plan) -> Result<PathBuf, Error> {
        match (&plan.image.path, &plan.image.environment) {
            (Some(path), _) => Ok(path.clone()),
            (None, environment) => {
                let name = environment.clone().unwrap_or_default();
                let Some(find) = self.shared.environments.clone() else {
                    return Err(Error::Invalid(format!(
                        "the image {:?} is the environment {name:?}, and the application knows no \
                         environments: set them with `ToolBuilder::environments`",
                        plan.image_name
                    )));
                };
                on_thread("find an environment", move || {
                    find(&name).map_err(|error| {
                        Error::host("find an environment")(std::io::Error::other(error))
                    })
                })
                .await
            }
        }
    }

    /// Returns the template of a VM; `None` if it cannot have one.
    async fn template(
        &self,
        vm: &VmBuilder,
        image: &Path,
        plan: &Plan,
    ) -> Result<Option<Template>, Error> {
        let mut key = KeyParts::default();
        key.add_file("image", image)
            .map_err(|error| Error::BadFile {
                what: "image",
                path: image.to_owned(),
                reason: error.to_string(),
            })?;
        let vcpus = plan.image.vcpus.unwrap_or(1);
        key.add("machine", format!("{} {vcpus}", plan.memory_mib).as_bytes());
        let key = key.key();
        if let Some(template) = self.known_templates().get(&key) {
            return Ok(template.clone());
        }
        // Calls that need the same one wait for each other there.
        let template = match vm.can_be_warm().await {
            true => Some(Template::builder(vm.clone()).get().await?),
            false => None,
        };
        let mut templates = self.known_templates();
        if templates.len() >= MAX_TEMPLATES {
            templates.clear();
        }
        templates.insert(key, template.clone());
        Ok(template)
    }

    fn known_templates(&self) -> MutexGuard<'_, HashMap<String, Option<Template>>> {
        let templates = self.shared.templates.lock();
        templates.unwrap_or_else(PoisonError::into_inner)
    }

    async fn resolve_secrets(&self, plan: &Plan) -> Result<Vec<(String, Secret)>, Error> {
        let mut secrets = Vec::new();
        for (variable, name) in &plan.secrets {
            let secret = self.resolve_secret(name).await;
            let secret = secret.map_err(|error| Error::Invalid(error.to_string()))?;
            secrets.push((variable.clone(), secret));
        }
        Ok(secrets)
    }

    async fn resolve_secret(&self, name: &str) -> Result<Secret, crate::secret::SecretError> {
        let grant = self.policy().secrets.get(name);
        let (env, file) = grant.map_or((None, None), |grant| {
            (grant.env.as_deref(), grant.file.as_deref())
        });
        match (
            env,
            file,
            self.shared.secrets.get(name),
            &self.shared.provider,
        ) {
            (Some(variable), ..) => Secret::from_env(name, variable),
            (None, Some(path), ..) => Secret::from_file(name, path),
            (None, None, Some(secret), _) => Ok(secret.clone()),
            (None, None, None, Some(provider)) => Secret::from_provider(name, &**provider).await,
            (None, None, None, None) => Err(crate::secret::SecretError::Provider {
                name: name.to_owned(),
                source: "the application has set neither it nor a provider".into(),
            }),
        }
    }

    /// Writes the receipt, and returns the outcome.
    async fn conclude(
        &self,
        call: &Call,
        plan: &Plan,
        mut attempt: Attempt,
        masks: &Masks,
    ) -> Result<ToolResult, ToolFailure> {
        let evidence = match attempt.evidence.take() {
            Some(evidence) => evidence.await.unwrap_or_default(),
            None => evidence::Evidence::default(),
        };
        let digest = &self.shared.policy_digest;
        let receipt = call.receipt(digest, plan, &attempt, evidence, masks);
        let receipt = self.append(receipt).await;
        let kind = attempt.failure();
        let text = |error: &Error| masks.text(&error.with_causes());
        if let Ending::Lost(error) = attempt.ending {
            return Err(ToolFailure::Transport {
                audit_id: call.audit_id(),
                reason: text(&error),
                source: Some(Box::new(error)),
            });
        }
        let (output, cause, reason, seconds) = match attempt.ending {
            Ending::Ended(output) => {
                let cause = output.exit.map(|exit| exit.cause);
                let reason = cause.map_or_else(String::new, |cause| cause.to_string());
                (output, cause, reason, 0)
            }
            Ending::TimedOut { output, after } => {
                (output, Some(Cause::Timeout), String::new(), after.as_secs())
            }
            Ending::NotStarted(error) | Ending::Lost(error) => (no_output(), None, text(&error), 0),
        };
        // A call that took too long as a whole has left nothing.
        let is_kept = attempt.sandbox_id.is_some() && attempt.cleanup.is_ok();
        let result = Box::new(ToolResult {
            sandbox_id: attempt.sandbox_id.unwrap_or_default(),
            audit_id: call.audit_id(),
            output: masked(output, masks),
            cause,
            outputs: attempt.outputs,
            retention: match is_kept {
                true => plan.retention,
                false => Retention::Destroy,
            },
            expires: attempt.cleanup.as_ref().ok().copied().flatten(),
            receipt: receipt.as_ref().ok().cloned(),
        });
        let cleanup = match (&attempt.cleanup, &receipt) {
            (Err(error), _) => Some(text(error)),
            (Ok(_), Err(error)) => Some(format!("its receipt was not written: {error}")),
            (Ok(_), Ok(_)) => None,
        };
        if let Some(reason) = cleanup {
            return Err(ToolFailure::Cleanup { reason, result });
        }
        match kind {
            None => Ok(*result),
            Some(ToolFailureKind::TimedOut) => Err(ToolFailure::TimedOut { seconds, result }),
            Some(_) => Err(ToolFailure::GuestCommand { reason, result }),
        }
    }

    async fn append(&self, receipt: Receipt) -> Result<ReceiptId, ReceiptError> {
        self.on_log(move |log| log.append(&receipt)).await
    }

    /// Uses the log on a thread, because that blocks.
    async fn on_log<T: Send + 'static>(
        &self,
        run: impl FnOnce(&ReceiptLog) -> Result<T, ReceiptError> + Send + 'static,
    ) -> Result<T, ReceiptError> {
        let log = self.shared.log.clone();
        let folder = log.folder().to_owned();
        let done = tokio::task::spawn_blocking(move || run(&log)).await;
        done.unwrap_or_else(|error| {
            Err(ReceiptError::Io {
                doing: "use",
                path: folder,
                source: std::io::Error::other(error),
            })
        })
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").finish_non_exhaustive()
    }
}

/// Deletes the sandboxes whose time is over.
async fn reap(workspaces: Workspaces) {
    match workspaces.reap_expired().await {
        Ok(ids) if ids.is_empty() => {}
        Ok(ids) => tracing::info!(?ids, "deleted workspaces whose time is over"),
        Err(error) => tracing::warn!(%error, "cannot delete workspaces whose time is over"),
    }
}

/// Returns whether a request has the value of one of its secrets.
fn has_literal_secret(plan: &Plan, masks: &Masks) -> bool {
    if masks.is_empty() {
        return false;
    }
    let arguments = plan.argv.iter().map(String::as_bytes);
    let files = plan.files.iter().map(|file| &*file.content);
    let mut all = arguments.chain(files).chain(plan.stdin.as_deref());
    all.any(|bytes| masks.bytes(&mut bytes.to_vec()))
}

/// Masks what does not come through the session of the VM.
fn masked(mut output: Output, masks: &Masks) -> Output {
    for text in output
        .network_denials
        .iter_mut()
        .chain(&mut output.warnings)
    {
        *text = masks.text(text);
    }
    output
}

fn no_output() -> Output {
    Output {
        exit: None,
        stdout: Vec::new(),
        stderr: Vec::new(),
        stdout_truncation: None,
        stderr_truncation: None,
        warnings: Vec::new(),
        network_denials: Vec::new(),
    }
}

fn no_call(error: Error) -> ToolFailure {
    ToolFailure::Transport {
        audit_id: String::new(),
        reason: error.with_causes(),
        source: Some(Box::new(error)),
    }
}
