/** Combines the status of a cluster's members: which ones are alive, which one leads, and whether they agree. */
import { z } from "zod";
import { EnvironmentError } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { formatHostPort } from "../runtime/host-port.ts";
import { askStatus, refusals } from "./admin-client.ts";
import { exchange } from "./http-exchange.ts";
import type { ClusterNodeStatus, ClusterStatus } from "./local-cluster.ts";
import type { ClusterConfig } from "./protocol-config.ts";

/** How long to wait for each member. */
export const PATIENCE_MS = 2_000;

/** One row of a survey: the status of a node from `up`, or the part of it that is known remotely. */
export interface SurveyedNode extends Omit<ClusterNodeStatus, "process" | "admin"> {
  readonly process: ClusterNodeStatus["process"] | "unknown";
  /**
   * The URL of the node's admin pages. Null if the config sets no fixed port for them; in that case, only the member's
   * output shows the chosen port.
   */
  readonly admin: string | null;
}
/** The status of a cluster that runs a protocol. */
export type Survey = Omit<ClusterStatus, "nodes"> & { readonly nodes: readonly SurveyedNode[] };

const answerSchema = z.object({
  cluster: z.string(),
  protocol: z.string(),
  hasLeaders: z.boolean().default(false),
  nodes: z.array(
    z.object({
      id: z.number(),
      pid: z.number().nullable(),
      alive: z.boolean(),
      leader: z.number().nullable(),
      term: z.number().nullable(),
      role: z.string().nullable(),
      process: z.enum(["starting", "running", "paused", "exited"]),
      address: z.string(),
      admin: z.string(),
      byzantine: z.string().exactOptional(),
      refusals,
    }),
  ),
});

/**
 * Requests the status from the pages of `coterie up`.
 * @throws EnvironmentError if nothing answers, or if the server is not `coterie up`
 */
export async function surveyOf(admin: string): Promise<Survey> {
  const hint = "start one with `coterie up`, or specify another with --admin";
  const answer = await exchange(`${admin}/status`, { timeoutMs: PATIENCE_MS }).catch((error: unknown) => {
    throw new EnvironmentError("unreachable", `no cluster answers at ${admin}: ${hint}`, { cause: error });
  });
  const parsed = answerSchema.safeParse(answer.body);
  if (!parsed.success)
    throw new EnvironmentError("unreachable", `the server at ${admin} is not \`coterie up\`: ${hint}`);
  return parsed.data;
}

/** Requests every member's status from its configured admin address. */
export async function surveyMembers({ cluster, protocol, members }: ClusterConfig): Promise<Survey> {
  let hasLeaders = false;
  const asked = Object.entries(members).map(async ([key, member]): Promise<SurveyedNode> => {
    const id = Number(key);
    const admin = member.admin.port === 0 ? null : `http://${formatHostPort(member.admin)}`;
    const answer = admin === null ? null : await askStatus(admin, id, PATIENCE_MS);
    const known = answer?.cluster === cluster ? answer : null;
    hasLeaders ||= known?.view.leader !== undefined;
    const { pid = null, leader = null, term = null, role = null, refusals: refused = [] } = known ?? {};
    const alive = known !== null;
    const lying = known?.byzantine === undefined ? {} : { byzantine: known.byzantine };
    return {
      id,
      pid,
      alive,
      leader,
      term,
      role,
      process: alive ? "running" : "unknown",
      address: formatHostPort(member.address),
      admin,
      ...lying,
      refusals: refused,
    };
  });
  const nodes = await Promise.all(asked);
  return { cluster, protocol, hasLeaders, nodes };
}

/** Describes which leader each honest, running member names, if they differ. Returns null if they agree. */
export function disagreement(nodes: readonly Opinion[]): string | null {
  const honest = honestOf(nodes);
  if (new Set(honest.map(({ leader }) => leader)).size < 2) return null;
  return honest
    .map(({ id, leader }) => `node ${id} ${leader === null ? "names no leader" : `names ${leader}`}`)
    .join(", ");
}

/** Whether no node knows who the leader is. */
export function knowOfNone(nodes: readonly Opinion[]): boolean {
  const honest = honestOf(nodes);
  return honest.length > 0 && honest.every(({ leader }) => leader === null);
}

const honestOf = (nodes: readonly Opinion[]): readonly Opinion[] =>
  nodes.filter(({ alive, byzantine }) => alive && byzantine === undefined);

interface Opinion {
  readonly id: NodeId;
  readonly alive: boolean;
  readonly leader: NodeId | null;
  readonly byzantine?: string | undefined;
}
