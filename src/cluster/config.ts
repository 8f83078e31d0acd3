/** The file that describes a cluster, the same for every member: who is where, and which protocol runs. */
import type { NodeId } from "../core/protocol.ts";
import type { Limits } from "../runtime/transport/limits.ts";

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export interface ClusterConfig {
  /** Members of another cluster are refused, so two clusters on one network cannot mix. */
  readonly cluster: string;
  /** A name of the registry. */
  readonly protocol: string;
  /** The protocol's own options. */
  readonly options: object;
  readonly members: Readonly<Record<NodeId, { readonly address: HostPort; readonly admin: HostPort }>>;
  /** PEM files; `{id}` in a path stands for the member's id. Null: no TLS, said explicitly or on loopback only. */
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string } | null;
  readonly limits: Partial<Limits>;
}
