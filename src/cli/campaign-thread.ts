/** A thread of `coterie campaign`: one task after the other, as it is asked. */
import { parentPort, workerData } from "node:worker_threads";
import { parseCampaign } from "../experiment/campaign/file.ts";
import type { CampaignTask, CampaignThreadData, FromCampaignThread } from "./campaign-threads.ts";
import { campaignWork } from "./campaign-work.ts";
import { makeAllYoung } from "./many-runs.ts";

makeAllYoung();
const { source, stop } = workerData as CampaignThreadData;
const campaign = parseCampaign(source);
const mayGoOn = (): boolean => Atomics.load(stop, 0) === 0;
const tell = (message: FromCampaignThread): void => parentPort?.postMessage(message);

parentPort?.on("message", (task: CampaignTask) => {
  campaignWork(campaign, task, mayGoOn).then(
    (answer) => tell({ answer }),
    (error: unknown) => {
      const { name, message, code = "failed" } = error as Error & { code?: string };
      tell({ error: { name, code, message } });
    },
  );
});
