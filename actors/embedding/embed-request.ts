/** What is asked of an embedding model, and what it answers; as tasks, which cross threads. */
import type { EmbedRequest as ProviderRequest } from './provider-client.ts';

export type { Purpose } from './embedding-models.ts';
export type { Embedded } from './provider-client.ts';

export interface EmbedByProviderTask {
  readonly task: 'embed-by-provider';
  readonly request: Omit<ProviderRequest, 'signal' | 'deadlineMs'>;
  /** On the system's clock, which threads share: waiting for a thread is part of the time. */
  readonly deadlineAt: number;
}

/** By the model that runs in this process. */
export interface EmbedHereTask {
  readonly task: 'embed-here';
  readonly texts: readonly string[];
}
