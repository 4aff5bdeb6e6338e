import type { Child } from './element.ts';
import type { Me, Tenant } from './shapes.ts';

/** What a page of the console may ask of the whole. */
export interface App {
  readonly me: Me;
  /** All that the person may act for, the current one among them. */
  readonly tenants: readonly Tenant[];
  /** The key of a sign-up a moment ago, to be shown this once; null otherwise. */
  readonly firstKey: string | null;
  /** An address of these pages, such as `/console#/keys`. */
  go(to: string): void;
  /** Asks who this is anew, and shows the same page again. */
  refresh(): Promise<void>;
  actFor(tenant: Tenant): Promise<void>;
  logOut(): void;
}

export interface View {
  /** The title of the window, and what a screen reader says first. */
  readonly title: string;
  readonly body: Child;
}

/** What follows the name of a page in its address: `#/search?namespace=notes`. */
export type ViewParameters = URLSearchParams;

export type ConsoleView = (app: App, parameters: ViewParameters) => View;

export function consoleLink(page: string, parameters: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(parameters).toString();
  return `/console#/${page}${query === '' ? '' : `?${query}`}`;
}
