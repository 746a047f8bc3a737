//! Connection strings, as the other programs for PostgreSQL take them.

use agent_checkpoint::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::failure::other;

/// Where a server's socket is on most systems.
const SOCKETS: &str = "/var/run/postgresql";

/// The settings in a connection string. What it leaves open is taken from the environment, as `psql` does.
pub(crate) fn parse(text: &str) -> Result<Config> {
    // The cause is not shown: it may quote a part of a password.
    let mut config: Config = text.parse().map_err(|_| {
        wrong(
            "this is no connection string; write `postgres://USER@HOST/DATABASE`, or `host=HOST user=USER dbname=DATABASE`, with \
             settings that this store knows, and anything but letters and digits in a password as `%` and two digits",
        )
    })?;
    let variable = |name| {
        std::env::var(name)
            .ok()
            .filter(|value: &String| !value.is_empty())
    };
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let is_here = std::path::Path::new(SOCKETS).is_dir();
        let usual = if is_here { SOCKETS } else { "localhost" };
        config.host(variable("PGHOST").as_deref().unwrap_or(usual));
    }
    if config.get_ports().is_empty()
        && let Some(port) = variable("PGPORT")
    {
        let number = port.parse();
        config.port(number.map_err(|_| wrong("PGPORT is no number of a port"))?);
    }
    if config.get_user().is_none()
        && let Some(user) = variable("PGUSER")
    {
        config.user(user);
    }
    if config.get_dbname().is_none()
        && let Some(database) = variable("PGDATABASE")
    {
        config.dbname(database);
    }
    if config.get_password().is_none()
        && let Some(password) = variable("PGPASSWORD")
    {
        config.password(password);
    }
    if config.get_application_name().is_none() {
        config.application_name("agent-checkpoint");
    }
    if config.get_ssl_mode() == SslMode::Require {
        return Err(wrong(
            "the connection string asks for TLS, which this program was built without; build it with the feature `tls`, or \
             write `sslmode=disable` where the network is trusted",
        ));
    }
    Ok(config)
}

/// How the server is named in messages: without the password.
pub(crate) fn shown(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let mut sockets = String::new();
    let mut hosts = Vec::new();
    for (at, host) in config.get_hosts().iter().enumerate() {
        match host {
            Host::Tcp(host) => hosts.push(format!("{host}:{}", port(at))),
            #[cfg(unix)]
            Host::Unix(folder) => {
                sockets = format!("?host={}&port={}", folder.display(), port(at));
            }
        }
    }
    if hosts.is_empty() {
        let addresses = config.get_hostaddrs().iter().enumerate();
        hosts.extend(addresses.map(|(at, address)| format!("{address}:{}", port(at))));
    }
    let user = config
        .get_user()
        .map_or(String::new(), |user| format!("{user}@"));
    let database = config
        .get_dbname()
        .or(config.get_user())
        .unwrap_or_default();
    format!("postgres://{user}{}/{database}{sockets}", hosts.join(","))
}

fn wrong(message: &str) -> Error {
    other("connection-string", message)
}
