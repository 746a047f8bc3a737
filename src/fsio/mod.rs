//! Files that survive: durable replace, limited read, sidecar lock.
