/** What one thread does of a campaign. */
import { runChunk } from "../experiment/campaign/chunk.ts";
import type { Campaign, CampaignExperiment } from "../experiment/campaign/file.ts";
import { smallestRun } from "../experiment/campaign/smallest.ts";
import { runSoak } from "./campaign-soak.ts";
import type { CampaignAnswer, CampaignTask } from "./campaign-threads.ts";

/** @param mayGoOn false once it should end, with null. */
export async function campaignWork(
  campaign: Campaign,
  task: CampaignTask,
  mayGoOn: () => boolean,
): Promise<CampaignAnswer> {
  if ("chunk" in task) return runChunk(campaign, task.chunk, (soak, seed) => runSoak(soak, seed, mayGoOn), mayGoOn);
  const { experiment, seed, what } = task.smallest;
  return smallestRun(campaign.experiments[experiment] as CampaignExperiment, seed, what);
}
