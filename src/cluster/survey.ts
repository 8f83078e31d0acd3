/** Combines the status of the members of a cluster: which are alive, who leads, and whether they agree. */
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

/** One row: the status of a node from `up`, or as far as it is known remotely. */
export interface SurveyedNode extends Omit<ClusterNodeStatus, "process" | "admin"> {
  readonly process: ClusterNodeStatus["process"] | "unknown";
  /** Null if the config has none: only the member's output shows the chosen port. */
  readonly admin: string | null;
}
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

/** Asks the pages of `coterie up`. @throws EnvironmentError if it does not answer, or another server answers */
export async function surveyOf(admin: string): Promise<Survey> {
  const hint = "start one with `coterie up`, or name another with --admin";
  const answer = await exchange(`${admin}/status`, { timeoutMs: PATIENCE_MS }).catch((error: unknown) => {
    throw new EnvironmentError("unreachable", `no cluster answers at ${admin}: ${hint}`, { cause: error });
  });
  const parsed = answerSchema.safeParse(answer.body);
  if (!parsed.success)
    throw new EnvironmentError("unreachable", `the server at ${admin} is not \`coterie up\`: ${hint}`);
  return parsed.data;
}

/** Asks every member, at its admin address in the config. */
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

/** The leaders named by the honest members that are alive, if they differ; null if they agree. */
export function disagreement(nodes: readonly Opinion[]): string | null {
  const honest = honestOf(nodes);
  if (new Set(honest.map(({ leader }) => leader)).size < 2) return null;
  return honest
    .map(({ id, leader }) => `node ${id} ${leader === null ? "knows no leader" : `names ${leader}`}`)
    .join(", ");
}

/** Whether none of them knows a leader. */
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
