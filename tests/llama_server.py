"""llama.cpp's own server, as the package xllamacpp brings it: python -m llama_server GGUF PORT [exact]

exact: keys and values of attention are kept in 32 bits, where llama.cpp keeps 16. One thread; ends when it is killed.
"""

from __future__ import annotations

import sys
import threading

import xllamacpp


def main(gguf: str, port: str, *exact: str) -> None:
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.model_alias, settings.port = gguf, {"smollm2"}, int(port)
    settings.n_ctx, settings.n_parallel = 2048, 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.ui = settings.warmup = settings.fit_params = False
    if exact:
        settings.cache_type_k = settings.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        settings.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = xllamacpp.Server(settings)
    sys.stdout.write(f"{server.listening_address}\n")
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
