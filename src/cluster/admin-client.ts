/** The caller's side of a member's admin pages (`runtime/admin-pages.ts`). */
import { z } from "zod";
import { EnvironmentError, UsageError } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { NodeStatus } from "../runtime/admin-pages.ts";
import type { Faults } from "../runtime/fault-gate.ts";
import { exchange } from "./http-exchange.ts";

const PATIENCE_MS = 1_000;

/** What is read of a status here; a member of a newer version may say more. */
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
});

export type BriefStatus = Pick<NodeStatus, keyof z.infer<typeof statusSchema>>;

/** Null where nobody answers in time, or somebody who is not that member. */
export async function askStatus(admin: string, node: NodeId, timeoutMs = PATIENCE_MS): Promise<BriefStatus | null> {
  try {
    const { status, body } = await exchange(`${admin}/status`, { timeoutMs });
    const parsed = statusSchema.safeParse(body);
    return status === 200 && parsed.success && parsed.data.id === node ? (parsed.data as BriefStatus) : null;
  } catch (error) {
    if (error instanceof EnvironmentError) return null;
    throw error;
  }
}

/** @throws EnvironmentError if the member does not take them. */
export async function putFaults(admin: string, faults: Faults): Promise<void> {
  const answer = await exchange(`${admin}/faults`, { method: "PUT", body: faults, timeoutMs: PATIENCE_MS });
  if (answer.status >= 300) throw new EnvironmentError("refused", complaint(answer.body, `status ${answer.status}`));
}

/** @throws UsageError with the member's own words if it refuses the command, EnvironmentError if it does not answer. */
export async function postCommand(admin: string, command: object): Promise<void> {
  const answer = await exchange(`${admin}/command`, { method: "POST", body: command, timeoutMs: PATIENCE_MS });
  if (answer.status < 300) return;
  const words = complaint(answer.body, `the member answered ${answer.status} to ${JSON.stringify(command)}`);
  throw answer.status < 500 ? new UsageError("bad-command", words) : new EnvironmentError("refused", words);
}

function complaint(body: unknown, otherwise: string): string {
  const parsed = z.object({ error: z.string() }).safeParse(body);
  return parsed.success ? parsed.data.error : otherwise;
}
