import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { builtInPlans, type Plan, type Plans } from '../../src/accounts/plans.ts';

/** A plans file in the folder: the built-in plans, or those without limits, but for these numbers of the free one. */
export function plansFile(folder: string, plans: 'built-in' | 'unlimited', free: Partial<Plan>): string {
  const { pro, attempts, free: before } = plans === 'built-in' ? builtInPlans : unlimitedPlans();
  const file = join(folder, 'plans.json');
  writeFileSync(file, JSON.stringify({ pro, attempts, free: { ...before, ...free } }));
  return file;
}

const unlimitedPlans = () => JSON.parse(readFileSync('load-tests/plans.unlimited.json', 'utf8')) as Plans;
