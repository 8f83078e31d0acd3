/** Where the jobs of a campaign wait, and where their results are kept: a folder of one machine, or a queue for several. */
import type { ChunkResult } from "../experiment/campaign/chunk.ts";
import type { Hands } from "./campaign-threads.ts";

export type Show = (done: number, waitsFor?: string) => void;

export interface CampaignQueue {
  /** How many jobs were done before this process began. */
  readonly foundJobs: number;
  /**
   * Works until every job has its result, from here or from elsewhere.
   *
   * @param show told how many jobs are done, and what it waits for, if it is not for jobs.
   * @returns one result for each job, or null if it was stopped before.
   * @throws EnvironmentError where a job cannot be done
   */
  work(hands: Hands, isStopped: () => boolean, show: Show): Promise<readonly ChunkResult[] | null>;
  close(): Promise<void>;
}
