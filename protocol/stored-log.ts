import { z } from './validate.ts';

/** A log that has ended, as the cluster view keeps it until all of its records are in manifests. */
export const sealedLogSchema = z.strictObject({
  logId: z.string(),
  /** The slot of the seal that ends it. */
  sealSeq: z.int().min(0),
});
export type SealedLog = Readonly<z.output<typeof sealedLogSchema>>;
