//! What models are told about the server as a whole.

use rmcp::{
    ErrorData,
    model::{
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult, Prompt,
        PromptArgument, PromptMessage, Role,
    },
};

use crate::Profile;

const WORKFLOW: &str = "workspace_workflow";

/// Returns what clients may show a model before it calls anything.
pub(crate) fn instructions(profile: Profile) -> &'static str {
    match profile {
        Profile::VmRun => {
            "Runs commands in microVMs. vm_run boots a new VM, runs one command, and deletes \
             the VM: nothing stays."
        }
        _ => {
            "Runs commands in microVMs. vm_run is for one command whose files need not stay. For \
             work in steps, workspace_create makes a workspace, a VM that keeps its files in \
             /workspace; workspace_exec runs commands in it; workspace_diff shows what has \
             changed; workspace_reset undoes it; workspace_delete deletes it. Errors say what to \
             do next."
        }
    }
}

pub(crate) fn list(profile: Profile) -> ListPromptsResult {
    let prompts = match profile {
        Profile::VmRun => Vec::new(),
        _ => vec![Prompt::new(
            WORKFLOW,
            Some("How to change a project in a workspace: create, push, exec, diff, export"),
            Some(vec![
                PromptArgument::new("task")
                    .with_description("What is to be done")
                    .with_required(false),
            ]),
        )],
    };
    ListPromptsResult::with_all_items(prompts)
}

pub(crate) fn get(
    profile: Profile,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResponse, ErrorData> {
    if profile == Profile::VmRun || request.name != WORKFLOW {
        let message = format!("there is no prompt {:?}", request.name);
        return Err(ErrorData::invalid_params(message, None));
    }
    let task = request.arguments.as_ref().and_then(|it| it.get("task"));
    let task = task.and_then(|task| task.as_str());
    let task = task.map_or(String::new(), |task| format!("\n\nThe task: {task}"));
    let text = format!("{TEXT}{task}");
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).into())
}

const TEXT: &str = "\
Work in a workspace of vmcell, a microVM that keeps its files in /workspace:

1. workspace_create makes one; note its workspace_id. environment \"debian\" has apt, curl and Python.
2. workspace_sync_push copies the project into it: `files` with contents, or `source_path` if the \
server may read that folder. Small changes are workspace_file_write or workspace_patch_apply.
3. workspace_exec runs a command in /workspace, such as the tests. Look at exit_code, stdout and \
stderr. What a command prints is cut in the middle if it is long.
4. Read the failure, change the files, and run it again, until it succeeds.
5. workspace_diff shows all that has changed since the workspace was created; workspace_reset \
undoes it.
6. workspace_export returns files, or copies them to a folder of the host if the server may \
write there.
7. workspace_delete deletes the workspace when nobody needs it any more.";
