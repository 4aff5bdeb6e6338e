import { readFileSync } from 'node:fs';

/**
 * The most memory that was resident in this process at once, in MB of 10^6 bytes: of its program alone, where `maxRSS` of `process.resourceUsage()` is
 * at least what the parent had when it started this one.
 */
export function peakResidentMB(): number {
  const kibibytes = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return (Number(kibibytes) * 1024) / 1e6;
}
