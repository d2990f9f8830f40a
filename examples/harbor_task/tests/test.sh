#!/bin/bash
if [ "$(cat /app/sum.txt)" = "$(($(paste -sd+ /app/numbers.txt)))" ] && [ "$GREETING" = hello ]
then echo 1; else echo 0; fi >/logs/verifier/reward.txt
