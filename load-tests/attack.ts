import type { AttackSite } from './attack-site.ts';

/** One of the attacks of the catalogue (attack-catalogue.ts). It ends by itself when its site is over. */
export interface Attack {
  readonly name: string;
  /** What it does, for people. */
  readonly about: string;
  /** Tenants of the attacker's one account; 1 by default. */
  readonly tenants?: number;
  /** It takes at least so long until it shows. */
  readonly secondsMin?: number;
  /** The server's resident memory beside it is judged. */
  readonly isMemoryJudged?: boolean;
  /** `/healthz` beside it is judged. */
  readonly isHealthJudged?: boolean;
  /** What neighbours import beside it, a second; one in five seconds by default. */
  readonly importsPerSecond?: number;
  /** It wants an embedding provider that takes the attacker's key and then never answers. */
  readonly hasHangingProvider?: boolean;
  /** Data that it needs, before anything is measured. */
  readonly prepare?: (site: AttackSite) => Promise<void>;
  readonly run: (site: AttackSite) => Promise<void>;
}
