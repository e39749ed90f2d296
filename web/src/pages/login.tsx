/** The way in: a token, from the link that the server prints or typed by hand. */

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";

import { post } from "../api";
import { begin } from "../live";

/** Why the token of the address was not taken. */
const refused = signal("");

/** Signs in with a token behind the # of the address, and takes it out of the address at once. */
export async function fromAddress(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  // The page then says why, and asks for another one.
  await post("/login", { token }).catch((error: Error) => { refused.value = error.message; });
}

export function Login() {
  const [token, setToken] = useState("");
  const [trouble, setTrouble] = useState(refused.value);
  const submitted = async (event: Event): Promise<void> => {
    event.preventDefault();
    setTrouble("");
    try {
      await post("/login", { token: token.trim() });
      await begin();
    } catch (error) {
      setTrouble((error as Error).message);
    }
  };
  return (
    <main class="login">
      <form class="card" onSubmit={(event) => void submitted(event)}>
        <h1>Divingbell</h1>
        <p class="quiet">Open the link that <code>divingbell serve --http</code> has printed, or give a token.</p>
        <label for="token">Token</label>
        <input id="token" type="password" autocomplete="off" required value={token} onInput={(event) => setToken(event.currentTarget.value)} />
        {trouble && <p class="refusal" role="alert">{trouble}</p>}
        <button type="submit" class="primary">Sign in</button>
      </form>
    </main>
  );
}
