#!/bin/bash
set -e
[ -e numbers.txt ] || seq 100 >numbers.txt
echo $(($(paste -sd+ numbers.txt))) >sum.txt
