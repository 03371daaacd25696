//! The server on HTTP, for clients that do not start it themselves.

mod request_ids;

use std::{convert::Infallible, fmt::Write as _, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::{
    model::JsonRpcError,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

use crate::{
    McpServer,
    connection::{MAX_LINE, Refusal},
};
use request_ids::RequestIds;

/// A server that listens on an address of this machine, with the streamable HTTP transport of
/// the protocol. Requests must have its [token](Self::token).
pub struct HttpServer {
    server: McpServer,
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

/// The path of the endpoint.
const PATH: &str = "/mcp";

/// How many connections are served at once.
const MAX_CONNECTIONS: usize = 128;

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long to wait after a connection could not be accepted. If this program has no
/// descriptor left, nothing tells when it has one again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl McpServer {
    /// Listens on an address of this machine that other machines do not reach; port 0 is a
    /// free one.
    ///
    /// # Errors
    /// If others would reach it, or if it is in use.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<HttpServer> {
        if !address.ip().is_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{address} can be reached by other machines: use 127.0.0.1 or [::1]"),
            ));
        }
        let listener = TcpListener::bind(address).await?;
        Ok(HttpServer {
            server: self.clone(),
            address: listener.local_addr()?,
            listener,
            token: random_token()?,
        })
    }
}

impl HttpServer {
    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Returns the token that clients send in the header `Authorization: Bearer TOKEN`. It is
    /// a new one each time.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Serves clients. It ends only if connections cannot be accepted any more.
    ///
    /// # Errors
    /// If connections cannot be accepted any more.
    ///
    /// # Cancel safety
    /// If the future is dropped, calls that run are cancelled. VMs that are not kept stay
    /// until [`McpServer::close`], or until their time is over.
    pub async fn run(self) -> io::Result<()> {
        let port = self.address.port();
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        // Pages of a browser have an origin, and none may use it.
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .enforce_origin_validation();
        let _stop = config.cancellation_token.clone().drop_guard();
        let server = self.server;
        let service = StreamableHttpService::new(
            move || Ok(server.for_client()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let authorization: Arc<str> = format!("Bearer {}", self.token).into();
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let ids = RequestIds::default();
        loop {
            let room = connections.clone().acquire_owned().await;
            let room = room.map_err(io::Error::other)?;
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (service, authorization) = (service.clone(), authorization.clone());
            let ids = ids.clone();
            tokio::spawn(async move {
                serve(stream, service, authorization, ids).await;
                drop(room);
            });
        }
    }
}

type Service = StreamableHttpService<McpServer, LocalSessionManager>;

type Body = BoxBody<Bytes, Infallible>;

async fn serve(stream: TcpStream, service: Service, authorization: Arc<str>, ids: RequestIds) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let (service, authorization) = (service.clone(), authorization.clone());
        let ids = ids.clone();
        async move {
            Ok::<_, Infallible>(match refusal(&request, &authorization) {
                None => answer(request, &service, &ids).await,
                Some(refusal) => refusal,
            })
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection has ended");
    }
}

/// The header that names the session of a request.
const SESSION: &str = "Mcp-Session-Id";

/// Answers a request of a client with the token.
async fn answer(request: Request<Incoming>, service: &Service, ids: &RequestIds) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Some(body) = read(body).await else {
        return refuse_message(StatusCode::PAYLOAD_TOO_LARGE, Refusal::too_long(None));
    };
    // Without a session, each request is one for itself.
    let session = head.headers.get(SESSION);
    let used_id = match session.map(|session| ids.add(session, &body)).transpose() {
        Ok(used_id) => used_id,
        Err(id) => return refuse_message(StatusCode::BAD_REQUEST, Refusal::used_id(&id)),
    };
    let request = Request::from_parts(head, Full::new(Bytes::from(body)));
    let response = service.handle(request).await;
    response.map(|body| {
        // The id is in use until all of the answer is sent.
        let body = body.map_frame(move |frame| {
            let _ = &used_id;
            frame
        });
        body.boxed()
    })
}

/// Reads what a client has sent, or nothing if it is too long: it is read to its end all the
/// same, for only then the client reads the answer.
async fn read(mut body: Incoming) -> Option<Vec<u8>> {
    let mut read = Some(Vec::new());
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            read = read.filter(|read| read.len() + data.len() <= MAX_LINE);
            if let Some(read) = &mut read {
                read.extend_from_slice(&data);
            }
        }
    }
    read
}

/// Returns why a request is refused, if it is: by who asks, and for what.
fn refusal(request: &Request<Incoming>, authorization: &str) -> Option<Response<Body>> {
    if !is_authorized(request.headers(), authorization) {
        let mut refusal = refuse(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
        let scheme = HeaderValue::from_static("Bearer");
        refusal.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        return Some(refusal);
    }
    match request.uri().path() {
        PATH => None,
        _ => Some(refuse(StatusCode::NOT_FOUND, "the endpoint is /mcp")),
    }
}

/// Compares all bytes, so that the time does not tell how many are right.
fn is_authorized(headers: &HeaderMap, expected: &str) -> bool {
    let sent = headers.get(AUTHORIZATION);
    let sent = sent.map_or(&b""[..], |sent| sent.as_bytes());
    let differences = sent.iter().zip(expected.bytes());
    let differences = differences.fold(0, |all, (a, b)| all | (a ^ b));
    differences == 0 && sent.len() == expected.len()
}

/// Refuses what the client has sent, with an error of the protocol.
fn refuse_message(status: StatusCode, refusal: Refusal) -> Response<Body> {
    let error = JsonRpcError::new(refusal.id, refusal.error);
    // Numbers and texts are always written.
    let error = serde_json::to_vec(&error).unwrap_or_default();
    let mut response = refuse(status, error);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn refuse(status: StatusCode, message: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(message.into());
    let mut response = Response::new(body.boxed());
    *response.status_mut() = status;
    response
}

fn random_token() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    let mut token = String::new();
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(token, "{byte:02x}");
    }
    Ok(token)
}
