import type { Scenario } from './scenario.ts';
import { batchWrites } from './scenarios/batches.ts';
import { filters } from './scenarios/filters.ts';
import { hybrid } from './scenarios/hybrid.ts';
import { importBesideReads } from './scenarios/import-beside-reads.ts';
import { literalSearch } from './scenarios/literal-search.ts';
import { loginStorm } from './scenarios/login-storm.ts';
import { manyNamespaces } from './scenarios/many-namespaces.ts';
import { manyTenants } from './scenarios/many-tenants.ts';
import { mcpCalls } from './scenarios/mcp-calls.ts';
import { pointReads } from './scenarios/point-reads.ts';
import { regexSearch } from './scenarios/regex-search.ts';
import { smallWrites } from './scenarios/small-writes.ts';
import { soak } from './scenarios/soak.ts';
import { sqlMix } from './scenarios/sql-mix.ts';
import { threeServers } from './scenarios/three-servers.ts';

/** Every scenario, in the order in which `npm run load -- all` plays them and the page shows them. */
export const scenarios: readonly Scenario[] = [
  pointReads,
  literalSearch,
  regexSearch,
  filters,
  hybrid,
  sqlMix,
  smallWrites,
  batchWrites,
  importBesideReads,
  manyTenants,
  manyNamespaces,
  mcpCalls,
  loginStorm,
  threeServers,
  soak,
];
