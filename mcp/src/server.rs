use std::{io, path::Path, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
        GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestMethod,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
        SubscribeRequestMethod, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use tokio::io::{AsyncRead, AsyncWrite};
use vmcell::{
    Error,
    tool::Tool,
    workspace::{Keeper, Workspaces},
};

use crate::{
    Profile, allowed_paths::AllowedPaths, call::Call, client::Client, connection::Connection,
    output_log::LogTarget, prompts, resources, shared::Shared, tool::Definition, tools,
};

/// A server that offers VMs and workspaces as tools: see the [crate](crate).
///
/// Clones are the same server.
#[derive(Clone)]
pub struct McpServer {
    shared: Arc<Shared>,
    profile: Profile,
    tools: Arc<[Definition]>,
    client: Arc<Client>,
}

/// Makes an [`McpServer`].
#[derive(Debug)]
pub struct McpServerBuilder {
    workspaces: Option<Workspaces>,
    vms: Option<Workspaces>,
    keeper: Option<Keeper>,
    profile: Profile,
    paths: AllowedPaths,
    tool: Option<Tool>,
}

/// The folder of the VMs of `vm_create`, which `vmcell vm` lists.
const VMS: &str = "vms";

impl McpServerBuilder {
    /// Sets which tools the server has. Default: all.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets where workspaces are. Default: those of this user.
    #[must_use]
    pub fn workspaces(mut self, workspaces: Workspaces) -> Self {
        self.workspaces = Some(workspaces);
        self
    }

    /// Sets where the VMs of `vm_create` are. Default: those of `vmcell vm`.
    #[must_use]
    pub fn vms(mut self, vms: Workspaces) -> Self {
        self.vms = Some(vms);
        self
    }

    /// Sets the program that runs workspaces, so that they go on when this program ends. It
    /// is used unless [`workspaces`](Self::workspaces) or [`vms`](Self::vms) say otherwise.
    #[must_use]
    pub fn keeper(mut self, keeper: Keeper) -> Self {
        self.keeper = Some(keeper);
        self
    }

    /// Lets models read and write a folder of this machine. Default: none.
    ///
    /// # Errors
    /// If it is not there, or is not a folder.
    pub fn allow_path(mut self, folder: impl AsRef<Path>) -> io::Result<Self> {
        self.paths.add(folder.as_ref())?;
        Ok(self)
    }

    /// Adds the tool `tool_run`, within the policy of this one.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tool = Some(tool);
        self
    }

    /// Makes the server.
    ///
    /// # Errors
    /// As for [`Workspaces::open`].
    pub fn build(self) -> Result<McpServer, Error> {
        let kept = |workspaces: Workspaces| match &self.keeper {
            Some(keeper) => workspaces.keeper(keeper.clone()),
            None => workspaces,
        };
        let workspaces = match self.workspaces {
            Some(workspaces) => workspaces,
            None => kept(Workspaces::open()?),
        };
        let vms = match self.vms {
            Some(vms) => vms,
            None => kept(Workspaces::open_apart(VMS)?.id_prefix("vm")),
        };
        let tools = tools::of_profile(self.profile, self.tool.as_ref());
        Ok(McpServer {
            shared: Arc::new(Shared::new(workspaces, vms, self.paths, self.tool)),
            profile: self.profile,
            tools: tools.into(),
            client: Arc::default(),
        })
    }
}

impl McpServer {
    /// Prepares a server with all tools, for the workspaces of this user.
    pub fn builder() -> McpServerBuilder {
        McpServerBuilder {
            workspaces: None,
            vms: None,
            keeper: None,
            profile: Profile::default(),
            paths: AllowedPaths::default(),
            tool: None,
        }
    }

    /// Serves one client until it closes its end, with one JSON message in each line. VMs of
    /// `vm_create` that it did not ask to keep are deleted then.
    ///
    /// # Errors
    /// If the client does not speak the protocol.
    ///
    /// # Cancel safety
    /// If the future is dropped, calls that run are cancelled, and VMs that are not kept stay
    /// until [`close`](Self::close) or until their time is over.
    pub async fn serve<R, W>(&self, input: R, output: W) -> io::Result<()>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let connection = Connection::new(input, output);
        let service = self.for_client().serve_with(connection).await;
        self.close().await;
        service
    }

    /// Serves one client on the standard streams of this program, as [`serve`](Self::serve).
    ///
    /// # Errors
    /// As for [`serve`](Self::serve).
    ///
    /// # Cancel safety
    /// As for [`serve`](Self::serve).
    pub async fn serve_standard_streams(&self) -> io::Result<()> {
        let (input, output) = rmcp::transport::stdio_pipes();
        self.serve(input, output).await
    }

    /// Returns the server as one client has it.
    pub(crate) fn for_client(&self) -> Self {
        Self {
            client: Arc::default(),
            ..self.clone()
        }
    }

    async fn serve_with<R, W>(self, connection: Connection<R, W>) -> io::Result<()>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let service = ServiceExt::serve(self, connection).await;
        let service = service.map_err(io::Error::other)?;
        service.waiting().await.map_err(io::Error::other)?;
        Ok(())
    }

    /// Deletes the VMs of `vm_create` that nobody asked to keep.
    pub async fn close(&self) {
        self.shared.delete_temporary().await;
    }

    /// Replaces the tools.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn with_tools(mut self, tools: Vec<Definition>) -> Self {
        self.tools = tools.into();
        self
    }

    /// Returns the tools, as `tools/list` does.
    pub fn tools(&self) -> Vec<rmcp::model::Tool> {
        self.tools.iter().map(|it| it.tool.clone()).collect()
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        #[expect(
            deprecated,
            reason = "clients ask for log messages only of servers that say so"
        )]
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_tools();
        let capabilities = match self.profile {
            Profile::VmRun => capabilities.build(),
            _ => capabilities
                .enable_prompts()
                .enable_resources()
                .enable_resources_subscribe()
                .build(),
        };
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("vmcell", env!("CARGO_PKG_VERSION")))
            .with_instructions(prompts::instructions(self.profile))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        let found = self.tools.iter().find(|tool| tool.name() == name);
        found.map(|found| found.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name() == request.name) else {
            let message = format!("there is no tool {:?}: tools/list lists all", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let log_level = context.meta.log_level().or(self.client.log_level());
        let log = LogTarget::of(&context, log_level, tool.name());
        let call = Call::new(self.shared.clone(), log);
        let progress = call.progress.clone();
        let token = context.meta.get_progress_token();
        let arguments = request.arguments.unwrap_or_default();
        // Dropping a call ends what it runs.
        let answer = tokio::select! {
            answer = tool.call(call, arguments) => answer,
            () = progress.report(&context.peer, token) => return Err(cancelled()),
            () = context.ct.cancelled() => return Err(cancelled()),
        };
        let result = match answer {
            Ok(answer) => CallToolResult::structured(answer),
            Err(failure) => failure.into_result(),
        };
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list(self.profile))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(self.profile, &request)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        match self.profile {
            Profile::VmRun => Ok(ListResourcesResult::default()),
            _ => resources::list(&self.shared).await,
        }
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(match self.profile {
            Profile::VmRun => ListResourceTemplatesResult::default(),
            _ => resources::templates(),
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match self.profile {
            Profile::VmRun => Err(ErrorData::method_not_found::<ReadResourceRequestMethod>()),
            _ => resources::read(&self.shared, &request.uri).await,
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match self.profile {
            Profile::VmRun => Err(ErrorData::method_not_found::<SubscribeRequestMethod>()),
            _ => {
                let (shared, peer) = (&self.shared, context.peer);
                self.client
                    .subscriptions
                    .add(shared, peer, request.uri)
                    .await
            }
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        match self.profile {
            Profile::VmRun => None,
            _ => Some(resources::accepted(requested)),
        }
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        resources::listen(&self.shared, &context).await
    }

    #[expect(deprecated, reason = "most clients set levels")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client.set_log_level(request.level);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client.subscriptions.remove(&request.uri);
        Ok(())
    }
}

fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}
