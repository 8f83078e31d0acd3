/** The module that every worker thread runs. A thread runs its tasks one after another, all of the same kind. */
import { parentPort, workerData } from "node:worker_threads";
import { loadProtocol } from "../../cluster/protocol-file.ts";
import { type FromWorker, makeAllYoung, type Work, type WorkerData } from "./threads.ts";

const REPORT_EVERY_MS = 100;

const { kind, stop, source, protocols } = workerData as WorkerData;

type Do<K extends keyof Work> = (
  task: Work[K]["task"],
  mayGoOn: (progress: Work[K]["progress"]) => boolean,
) => Work[K]["answer"] | Promise<Work[K]["answer"]>;

const works: { readonly [K in keyof Work]: () => Promise<Do<K>> } = {
  async check() {
    const { answerTo } = await import("../../experiment/explore.ts");
    return (task, mayGoOn) => answerTo(task, mayGoOn, process.memoryUsage.rss);
  },
  async history() {
    const { answerWithin } = await import("./check-history.ts");
    return answerWithin;
  },
  async campaign() {
    makeAllYoung();
    const [{ campaignWork }, { parseCampaign }] = await Promise.all([
      import("./campaign-jobs.ts"),
      import("../../experiment/campaign/file.ts"),
    ]);
    const campaign = parseCampaign(source as NonNullable<typeof source>);
    return (task) => campaignWork(campaign, task, () => Atomics.load(stop, 0) === 0);
  },
};

for (const file of protocols) await loadProtocol(file);
const work = (await works[kind]()) as Do<keyof Work>;
const send = (message: FromWorker<unknown, unknown>): void => parentPort?.postMessage(message);
let due = 0;

/**
 * Whether to continue. The work calls this from time to time with its progress. Once it returns false, the work ends
 * with the results it has so far.
 */
function mayGoOn(progress: unknown): boolean {
  const now = Date.now();
  if (now >= due) {
    due = now + REPORT_EVERY_MS;
    send({ progress });
  }
  return Atomics.load(stop, 0) === 0;
}

parentPort?.on("message", (task: Work[keyof Work]["task"]) => void perform(task));

async function perform(task: Work[keyof Work]["task"]): Promise<void> {
  try {
    send({ answer: await work(task, mayGoOn) });
  } catch (error) {
    const { name, message, code = "failed" } = error as Error & { code?: string };
    send({ error: { name, code, message } });
  }
}
