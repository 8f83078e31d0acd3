/** A client for a member's admin pages (`runtime/admin-pages.ts`). */
import { z } from "zod";
import { EnvironmentError, UsageError } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { NodeStatus } from "../runtime/admin-pages.ts";
import type { Faults } from "../runtime/fault-injector.ts";
import { exchange } from "./http-exchange.ts";

const PATIENCE_MS = 1_000;

/** Absent from the status of older members. */
export const refusals = z
  .array(
    z.object({
      node: z.number(),
      reason: z.enum(["wrong-members", "lost-journal"]),
      detail: z.string(),
      members: z.string(),
    }),
  )
  .default([]);

/** The status fields used here. Newer members may send more. */
const statusSchema = z.object({
  id: z.number(),
  pid: z.number(),
  cluster: z.string(),
  protocol: z.string(),
  leader: z.number().nullable(),
  term: z.number().nullable(),
  role: z.string(),
  view: z.looseObject({ role: z.string(), leader: z.number().nullable().optional(), term: z.number().optional() }),
  commands: z.record(z.string(), z.array(z.string())),
  byzantine: z.string().exactOptional(),
  refusals,
});

/** The part of a member's status that programs read. */
export type BriefStatus = Pick<NodeStatus, keyof z.infer<typeof statusSchema>>;

/** The fields used here from the status of a member started with `join()`. */
const serviceSchema = z.object({
  id: z.number(),
  pid: z.number(),
  cluster: z.string(),
  protocol: z.literal("services"),
  role: z.string(),
  leader: z.number().nullable(),
  reachable: z.number(),
  hasQuorum: z.boolean(),
  refusals,
  shared: z.looseObject({}),
  voters: z.array(z.number()),
  peers: z.array(z.object({ id: z.number(), address: z.string(), suspected: z.boolean() })),
  instances: z.array(
    z.object({
      kind: z.enum(["election", "mutex", "channel"]),
      name: z.string(),
      leader: z.number().nullable(),
      token: z.number().nullable(),
      isHeld: z.boolean(),
      waiting: z.number(),
      channel: z.object({ view: z.number().nullable(), members: z.array(z.number()), state: z.string() }).optional(),
    }),
  ),
});

/** The part of the status that only members started with `join()` have. */
export type ServiceStatus = z.infer<typeof serviceSchema>;

/** @returns null if the member does not answer in time, or if a different member answers */
export async function askStatus(admin: string, node: NodeId, timeoutMs = PATIENCE_MS): Promise<BriefStatus | null> {
  const found = await answered(admin, statusSchema, timeoutMs);
  return found?.id === node ? (found as BriefStatus) : null;
}

/** @returns null if the member does not answer in time, or if it does not serve elections, locks and channels */
export function askServiceStatus(admin: string, timeoutMs = PATIENCE_MS): Promise<ServiceStatus | null> {
  return answered(admin, serviceSchema, timeoutMs);
}

async function answered<T>(admin: string, schema: z.ZodType<T>, timeoutMs: number): Promise<T | null> {
  try {
    const { status, body } = await exchange(`${admin}/status`, { timeoutMs });
    const parsed = schema.safeParse(body);
    return status === 200 && parsed.success ? parsed.data : null;
  } catch (error) {
    if (error instanceof EnvironmentError) return null;
    throw error;
  }
}

/** @throws EnvironmentError if the member rejects the faults */
export async function putFaults(admin: string, faults: Faults): Promise<void> {
  const answer = await exchange(`${admin}/faults`, { method: "PUT", body: faults, timeoutMs: PATIENCE_MS });
  if (answer.status >= 300) throw new EnvironmentError("refused", complaint(answer.body, `status ${answer.status}`));
}

/**
 * @throws UsageError with the member's message if it refuses the command; EnvironmentError if the member does not
 *   answer
 */
export async function postCommand(admin: string, command: object): Promise<void> {
  const answer = await exchange(`${admin}/command`, { method: "POST", body: command, timeoutMs: PATIENCE_MS });
  if (answer.status < 300) return;
  const words = complaint(answer.body, `the member answered ${answer.status} to ${JSON.stringify(command)}`);
  throw answer.status < 500 ? new UsageError("bad-command", words) : new EnvironmentError("refused", words);
}

/** Returns the message of an error response. */
export function complaint(body: unknown, otherwise: string): string {
  const parsed = z.object({ error: z.string() }).safeParse(body);
  return parsed.success ? parsed.data.error : otherwise;
}
